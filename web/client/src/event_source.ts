import type { Event } from './protocol.js';
import type { Transport } from './transport.js';

// After this time without an event, what arrived is complete.
const quietMs = 1_000;

const types: Array<Event['type']> = ['hello', 'reset', 'upsert', 'delete', 'end_of_snapshot', 'bookmark', 'status', 'goodbye'];

/**
 * Reads streams with the browser's own `EventSource`, for pages that must not use
 * `fetch`. It cannot send headers, so `getToken` cannot be used; it hides the
 * heartbeat, so a connection that died silently is not noticed; and it hides the
 * reason of a refusal, so a refusal looks like a lost connection.
 *
 * The client still reconnects by itself: an `EventSource` has no back-off, and gives
 * up at the first refusal.
 */
export const eventSourceTransport: Transport = {
  hearsHeartbeat: false,
  checkHeaders() {
    throw new Error('an EventSource cannot send a token: use authenticated');
  },
  read({ url, lastEventId, credentials, signal }, receiver) {
    return new Promise((_, reject) => {
      const query = lastEventId ? `&last_event_id=${encodeURIComponent(lastEventId)}` : '';
      const source = new EventSource(url + query, { withCredentials: credentials === 'include' });
      let last = '';
      let quiet: ReturnType<typeof setTimeout> | undefined;

      const take = ({ data, lastEventId: id }: MessageEvent<string>) => {
        clearTimeout(quiet);
        receiver.alive();
        receiver.event(data);
        // An event without an id repeats the last one. A transaction may also end
        // with the id of the one before: then it is complete after a silence.
        if (id !== last) receiver.id((last = id));
        else if (id) quiet = setTimeout(settle, quietMs);
        receiver.flush();
      };
      const settle = () => {
        receiver.id(last);
        receiver.flush();
      };
      const end = (reason: Error) => {
        clearTimeout(quiet);
        source.close();
        reject(reason);
      };

      for (const type of types) source.addEventListener(type, take);
      source.onerror = () => end(new Error('the connection was lost'));
      signal.addEventListener('abort', () => end(signal.reason));
    });
  },
};
