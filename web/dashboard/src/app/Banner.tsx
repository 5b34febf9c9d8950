import { hurry } from '../gateway/hurry';
import { duration } from '../text/duration';
import { ValueText } from '../text/KeyText';
import { moment } from '../text/moment';
import { useNow } from './clock';
import { useCut } from './cut';
import { useDelayed } from './delayed';
import { useNarrow } from './narrow';
import { RecoveryNotice } from './RecoveryNotice';
import { href } from './route';
import { type Trouble, useReported } from './troubles';
import './Banner.css';

// In order of severity.
const texts: Record<Trouble['state'], string> = {
  offline: 'is offline: what you see may be out of date',
  stale: 'may be out of date',
  closed: 'is closed: what you see is its last known state',
  resyncing: 'is being reloaded: what you see may be out of date',
  paused: 'is paused: what you see is not the current state',
  priming: 'has not been loaded yet',
  connecting: 'is not connected yet',
};
const severity = Object.keys(texts);

// In these states, the displayed data cannot be wrong.
const mild = new Set<Trouble['state']>(['priming', 'connecting', 'paused']);

/** Warns on every page that its data may be stale, with the start time. Announces a recovery once. */
export function Banner() {
  const troubles = useDelayed(useReported()).toSorted((a, b) => severity.indexOf(a.state) - severity.indexOf(b.state));
  const most = useNarrow() ? 2 : 4;
  const state = troubles[0]?.state;
  // A screen reader reads only additions: neither a reason that changes with each
  // attempt, nor all lines again when there is one more.
  return (
    <>
      <div
        role="alert"
        aria-atomic="false"
        aria-relevant="additions"
        {...(state && { className: mild.has(state) ? 'banner mild' : 'banner', 'data-testid': 'stale-banner', 'data-state': state })}
      >
        {troubles.slice(0, most).map((trouble) => (
          <Line key={`${trouble.what} ${trouble.state}`} trouble={trouble} />
        ))}
        {troubles.some(({ state }) => state === 'offline') && (
          <button type="button" onClick={hurry}>
            Reconnect
          </button>
        )}
        {troubles.length > most && (
          <p>
            <a href={href('watches', '', new URLSearchParams({ sort: 'state' }))}>and {troubles.length - most} more</a>
          </p>
        )}
      </div>
      <RecoveryNotice troubled={state !== undefined} starting={state === 'priming' || state === 'connecting'} />
    </>
  );
}

function Line({ trouble: { what, state, since, reason } }: { trouble: Trouble }) {
  const { ref, cut, open, toggle } = useCut();
  return (
    <div className="line" data-open={open || undefined}>
      <p ref={ref}>
        <strong>{what}</strong> {texts[state]}
        {since > 0 && (
          <>
            , since <time dateTime={new Date(since).toISOString()}>{moment(since)}</time> <Elapsed since={since} />
          </>
        )}
        {reason && (
          <>
            : <ValueText text={reason} />
          </>
        )}
      </p>
      {(cut || open) && (
        <button
          type="button"
          className="unfold"
          aria-live="off"
          aria-label={`${open ? 'Less' : 'More'} of the reason`}
          aria-expanded={open}
          onClick={toggle}
        >
          {open ? 'Less' : 'More'}
        </button>
      )}
    </div>
  );
}

// Hidden from screen readers, which would otherwise read it every second.
function Elapsed({ since }: { since: number }) {
  return <span aria-hidden="true">({duration(Math.max(0, useNow() - since))})</span>;
}
