import { href } from '../app/route';
import { useWatches } from '../gateway/watches';

/** Lists the watches with links to their streams. */
export function WatchList() {
  const { data } = useWatches();
  return (
    <div className="wire">
      <h2>Stream</h2>
      <p>The raw events that a client receives. Choose a watch:</p>
      <ul className="choice">
        {data?.watches.map(({ name, state, count }) => (
          <li key={name}>
            <a className="card" href={href('stream', name)}>
              <strong>{name}</strong>{' '}
              <span className="soft">
                {state.replace('_', ' ')}, {count} resources
              </span>
            </a>
          </li>
        ))}
      </ul>
      {data?.watches.length === 0 && <p>There are no watches that you can access.</p>}
    </div>
  );
}
