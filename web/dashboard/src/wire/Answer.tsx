import { useNow } from '../app/clock';
import { duration } from '../text/duration';
import { bytes, count } from '../text/number';
import { isEvent } from './frame';
import type { Connection } from './wire';

const texts: Record<Connection['state'], string> = {
  connecting: 'Connecting…',
  open: 'Connected',
  refused: 'Refused',
  ended: 'Ended',
  lost: 'Lost',
  left: 'Disconnected',
  hidden: 'Disconnected',
};

/** Shows the response of the gateway, how much arrived, and how the connection ended. */
export function Answer({ connection }: { connection: Connection }) {
  const { state, status, headers, reason, since, kept } = connection;
  const live = state === 'connecting' || state === 'open';
  const events = [...kept.types].reduce((sum, [type, n]) => (isEvent(type) ? sum + n : sum), 0);
  return (
    <div className="answer">
      <div className="bar">
        <span role="status">
          <span className="state" data-state={state === 'open' ? 'in_sync' : live ? 'connecting' : 'closed'}>
            {texts[state]}
          </span>
          {!live && reason && <span className="why"> {reason}</span>}
        </span>
        {status && <code className="status">{status}</code>}
        {since > 0 && (
          <span className="soft">
            for <Age since={since} />
          </span>
        )}
        <span className="soft">
          <b>{count(events)}</b> {events === 1 ? 'event' : 'events'}, <b>{bytes(kept.bytes)}</b>
        </span>
        {kept.dropped > 0 && <span className="soft">the oldest {count(kept.dropped)} frames were dropped</span>}
        {headers.length > 0 && (
          <details>
            <summary>Response headers</summary>
            <dl className="mono">
              {headers.map(([name, value]) => (
                <div key={name}>
                  <dt>{name}:</dt> <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </details>
        )}
      </div>
    </div>
  );
}

function Age({ since }: { since: number }) {
  return <>{duration(Math.max(0, useNow() - since))}</>;
}
