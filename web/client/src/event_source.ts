import type { Event } from './protocol.js';
import type { Transport } from './transport.js';

// After so long without an event, what came is complete.
const quietMs = 1_000;

const types: Array<Event['type']> = ['hello', 'reset', 'upsert', 'delete', 'end_of_snapshot', 'bookmark', 'status', 'goodbye'];

/**
 * Reads streams with the browser's own `EventSource`, for where a page must not use
 * `fetch`. It cannot send headers, so that there is no `getToken`; it hides the
 * heartbeat, so that a connection that died without a word is not noticed; and it
 * hides why it was refused, so that a refusal is a lost connection.
 *
 * Reconnecting is left to the client all the same: a browser's own way knows no
 * back-off, and ends at the first refusal.
 */
export const eventSourceTransport: Transport = {
  hearsHeartbeat: false,
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
        // It repeats the last id where there is none. A transaction may end with
        // the id of the one before: then silence says that it is complete.
        if (id !== last) receiver.id(last = id);
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
