import { href } from '../app/route';
import type { Subscriber } from '../gateway/contract';

/** Where a subscriber is, and what it says that it is. */
export function Client({ subscriber: { address, user_agent: agent } }: { subscriber: Subscriber }) {
  return (
    <span className="client">
      <code>{address ?? 'unknown address'}</code>
      <span className="soft clamped" title={agent}>{agent ?? 'no user agent'}</span>
    </span>
  );
}

/** What it subscribed to, and what it has of that. */
export function Subscribed({ subscriber: { watches, position } }: { subscriber: Subscriber }) {
  return (
    <span className="client">
      <span className="watched">{watches.map((name) => <a key={name} href={href('watches', name)}>{name}</a>)}</span>
      {position && <code className="soft clamped" title={position}>{position}</code>}
    </span>
  );
}

/** How it is sent: `sse, gzip`. */
export const transport = ({ transport: name, encoding }: Subscriber): string => (encoding ? `${name}, ${encoding}` : name);
