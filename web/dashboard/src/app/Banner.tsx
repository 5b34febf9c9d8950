import { duration } from '../text/duration';
import { useNow } from './clock';
import { useReported, type Trouble } from './troubles';
import './Banner.css';

const says: Record<Trouble['state'], string> = {
  stale: 'may be out of date',
  offline: 'is not connected: what you see may be out of date',
  closed: 'is closed: what you see is the last that was known',
  priming: 'has not been loaded yet',
  resyncing: 'is being loaded again: what you see may be out of date',
  connecting: 'is not connected yet',
  paused: 'is paused: what you see is not what there is now',
};

// Those that only wait for a beginning show nothing that could be wrong.
const mild = new Set<Trouble['state']>(['priming', 'connecting', 'paused']);

/** Says, on every page, that what is shown may be stale, and since when. */
export function Banner() {
  const troubles = useReported();
  if (troubles.length === 0) return <div role="alert" />;
  const worst = troubles.find(({ state }) => !mild.has(state)) ?? troubles[0]!;
  return (
    <div role="alert" className={mild.has(worst.state) ? 'banner mild' : 'banner'} data-testid="stale-banner" data-state={worst.state}>
      {troubles.slice(0, 4).map((trouble) => <Line key={`${trouble.what} ${trouble.state}`} trouble={trouble} />)}
      {troubles.length > 4 && <p>and {troubles.length - 4} more</p>}
    </div>
  );
}

function Line({ trouble: { what, state, since, reason } }: { trouble: Trouble }) {
  return (
    <p>
      <strong>{what}</strong> {says[state]}
      {since > 0 && <>, since <time dateTime={new Date(since).toISOString()}>{new Date(since).toLocaleTimeString()}</time> <Age since={since} /></>}
      {reason && <>: {reason}</>}
    </p>
  );
}

// Not read out every second: the time above says the same.
function Age({ since }: { since: number }) {
  return <span aria-hidden="true">({duration(Math.max(0, useNow() - since))})</span>;
}
