import { useRef } from 'react';
import { useWatches } from '../gateway/watches';
import type { StreamRequest } from './request';
import type { Connection } from './wire';

interface Props {
  request: StreamRequest;
  connection: Connection;
  onChange(request: StreamRequest): void;
  onConnect(request: StreamRequest): void;
  onDisconnect(): void;
}

/** The form of the request, which takes effect with the button. */
export function RequestForm({ request, connection: { state, position }, onChange, onConnect, onDisconnect }: Props) {
  const connect = useRef<HTMLButtonElement>(null);
  const live = state === 'open' || state === 'connecting';
  const change = (part: Partial<StreamRequest>) => onChange({ ...request, ...part });
  return (
    <form
      className="request card"
      onSubmit={(event) => {
        event.preventDefault();
        onConnect(request);
      }}
    >
      <Watches request={request} onChange={(watches) => change({ watches })} />
      <label>
        Key prefix{' '}
        <input
          value={request.prefix}
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          onChange={(event) => change({ prefix: event.target.value })}
        />
      </label>
      <label>
        Format{' '}
        <select value={request.format} onChange={(event) => change({ format: event.target.value as StreamRequest['format'] })}>
          <option value="sse">Server-Sent Events</option>
          <option value="ndjson">NDJSON</option>
        </select>
      </label>
      <label className="position">
        From position{' '}
        <input
          value={request.position}
          placeholder="none: start with a snapshot"
          spellCheck={false}
          autoCapitalize="off"
          autoComplete="off"
          onChange={(event) => change({ position: event.target.value })}
        />
      </label>
      <div className="bar">
        <button ref={connect} type="submit" className={live ? '' : 'primary'}>
          {live ? 'Reconnect' : 'Connect'}
        </button>
        {live && (
          <button
            type="button"
            onClick={() => {
              connect.current?.focus(); // this button goes away
              onDisconnect();
            }}
          >
            Disconnect
          </button>
        )}
        {!live && position !== '' && (
          <button type="button" onClick={() => onConnect({ ...request, position })}>
            Resume from the last position
          </button>
        )}
      </div>
    </form>
  );
}

// The watches that are in the same response as that of the page.
function Watches({ request: { watches }, onChange }: { request: StreamRequest; onChange(watches: readonly string[]): void }) {
  const { data } = useWatches();
  const names = data?.watches.map(({ name }) => name).filter((name) => name !== watches[0]) ?? [];
  if (names.length === 0) return null;
  const toggle = (name: string) => (watches.includes(name) ? watches.filter((other) => other !== name) : [...watches, name]);
  return (
    <details className="also">
      <summary>{watches.length === 1 ? 'One watch' : `${watches.length} watches in one response`}</summary>
      <div role="group" aria-label={`In addition to ${watches[0]}`}>
        <p className="soft">In addition to {watches[0]}</p>
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={watches.includes(name)} onChange={() => onChange(toggle(name))} /> {name}
          </label>
        ))}
      </div>
    </details>
  );
}
