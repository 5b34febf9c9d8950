import { href } from '../app/route';
import { useWatches } from '../gateway/watches';

/** Every watch, and how it fares. */
export function Overview() {
  const { data } = useWatches();
  return (
    <ul>{data?.watches.map(({ name }) => (
      <li key={name} data-testid="watch-row" data-watch={name}><a href={href('watches', name)}>{name}</a></li>
    ))}</ul>
  );
}
