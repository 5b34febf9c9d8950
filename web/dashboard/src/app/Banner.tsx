import { duration } from '../text/duration';
import { moment } from '../text/moment';
import { AllClear } from './RecoveryNotice';
import { useNow } from './clock';
import { useNarrow } from './narrow';
import { href } from './route';
import { useReported, type Trouble } from './troubles';
import { useLasting } from './delayed';
import './Banner.css';

// The worst first.
const says: Record<Trouble['state'], string> = {
  offline: 'is offline: what you see may be out of date',
  stale: 'may be out of date',
  closed: 'is closed: what you see is its last known state',
  resyncing: 'is being reloaded: what you see may be out of date',
  paused: 'is paused: what you see is not the current state',
  priming: 'has not been loaded yet',
  connecting: 'is not connected yet',
};
const worst = Object.keys(says);

// Those that only wait for a beginning show nothing that could be wrong.
const mild = new Set<Trouble['state']>(['priming', 'connecting', 'paused']);

/** Says, on every page, that what is shown may be stale, and since when; and once that it no longer is. */
export function Banner() {
  const troubles = useLasting(useReported()).toSorted((a, b) => worst.indexOf(a.state) - worst.indexOf(b.state));
  const most = useNarrow() ? 2 : 4;
  const state = troubles[0]?.state;
  // Only what is added is read out: neither a reason that changes with each
  // attempt, nor the whole anew for one more.
  return (
    <>
      <div role="alert" aria-atomic="false" aria-relevant="additions"
        {...state && { className: mild.has(state) ? 'banner mild' : 'banner', 'data-testid': 'stale-banner', 'data-state': state }}>
        {troubles.slice(0, most).map((trouble) => <Line key={`${trouble.what} ${trouble.state}`} trouble={trouble} />)}
        {troubles.length > most && <p><a href={href('', '', new URLSearchParams({ sort: 'state' }))}>and {troubles.length - most} more</a></p>}
      </div>
      <AllClear troubled={state !== undefined} begins={state === 'priming' || state === 'connecting'} />
    </>
  );
}

function Line({ trouble: { what, state, since, reason } }: { trouble: Trouble }) {
  return (
    <p>
      <strong>{what}</strong> {says[state]}
      {since > 0 && <>, since <time dateTime={new Date(since).toISOString()}>{moment(since)}</time> <Lasted since={since} /></>}
      {reason && <>: {reason}</>}
    </p>
  );
}

// Not read out every second: the time above says the same.
function Lasted({ since }: { since: number }) {
  return <span aria-hidden="true">({duration(Math.max(0, useNow() - since))})</span>;
}
