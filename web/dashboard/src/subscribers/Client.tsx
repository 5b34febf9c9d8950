import type { Subscriber, SubscriberPrincipal } from '@watchtide/protocol';
import { href } from '../app/route';

/** Shows the principal, the address and the user agent of a subscriber. */
export function Client({ subscriber: { principal, address, user_agent: agent } }: { subscriber: Subscriber }) {
  return (
    <span className="client">
      <span className="line">
        {principal && <Who principal={principal} />} <code>{address ?? 'unknown address'}</code>
      </span>
      <span className="soft line" title={agent}>
        {agent ?? 'no user agent'}
      </span>
    </span>
  );
}

/** Shows the watches of a subscriber, and its position in them. */
export function Subscribed({ subscriber: { watches, position } }: { subscriber: Subscriber }) {
  return (
    <span className="client">
      <span className="watched line" title={watches.join(', ')}>
        {watches.map((name) => (
          <a key={name} href={href('watches', name)}>
            {name}
          </a>
        ))}
      </span>
      {position && (
        <code className="soft line" title={position}>
          {position}
        </code>
      )}
    </span>
  );
}

function Who({ principal: { mechanism, issuer, name, client_id } }: { principal: SubscriberPrincipal }) {
  const origin = [issuer ?? mechanism, client_id && `OAuth client ${client_id}`].filter(Boolean).join(', ');
  return (
    <strong title={`${name}, ${origin}`}>
      {name} {client_id && <span className="soft">by {client_id}</span>}
    </strong>
  );
}
