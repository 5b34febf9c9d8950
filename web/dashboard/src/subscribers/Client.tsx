import { href } from '../app/route';
import type { Subscriber } from '../gateway/contract';

/** Shows the address and the user agent of a subscriber. */
export function Client({ subscriber: { address, user_agent: agent } }: { subscriber: Subscriber }) {
  return (
    <span className="client">
      <code>{address ?? 'unknown address'}</code>
      <span className="soft clamped" title={agent}>
        {agent ?? 'no user agent'}
      </span>
    </span>
  );
}

/** Shows the watches of a subscriber, and its position in them. */
export function Subscribed({ subscriber: { watches, position } }: { subscriber: Subscriber }) {
  return (
    <span className="client">
      <span className="watched">
        {watches.map((name) => (
          <a key={name} href={href('watches', name)}>
            {name}
          </a>
        ))}
      </span>
      {position && (
        <code className="soft clamped" title={position}>
          {position}
        </code>
      )}
    </span>
  );
}

/** Returns the transport and encoding of a subscriber: `sse, gzip`. */
export const transport = ({ transport: name, encoding }: Subscriber): string => (encoding ? `${name}, ${encoding}` : name);
