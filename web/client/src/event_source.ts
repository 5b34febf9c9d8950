import type { Event } from './protocol.js';
import { reaches } from './revision.js';
import { postOnce, type Transport } from './transport.js';

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
  post: postOnce,
  checkHeaders() {
    throw new Error('an EventSource cannot send a token: use authenticated');
  },
  read({ url, lastEventId, credentials, signal }, receiver) {
    return new Promise((_, reject) => {
      const query = lastEventId ? `&last_event_id=${encodeURIComponent(lastEventId)}` : '';
      const source = new EventSource(url + query, { withCredentials: credentials === 'include' });
      const covered = new Covered();
      let last = '';
      let quiet: ReturnType<typeof setTimeout> | undefined;

      const take = ({ data, lastEventId: id, origin }: MessageEvent<string>) => {
        clearTimeout(quiet);
        // It names the server that has answered, after redirects, which nothing can forbid.
        if (origin && !source.url.startsWith(`${origin}/`)) throw new Error(`${url} was redirected to ${origin}`);
        receiver.alive();
        receiver.event(data);
        covered.add(JSON.parse(data));
        // An event without an id repeats the last one. A transaction may also end
        // with the id of the one before, if that covers it: then it is complete after a silence.
        if (id !== last) settle(id);
        else if (id && covered.mayBeComplete) quiet = setTimeout(attempt, quietMs, settle, id);
        receiver.flush();
      };
      const settle = (id: string) => {
        covered.settle();
        receiver.id((last = id));
        receiver.flush();
      };
      // An event that cannot be read ends the stream.
      const attempt = <T>(run: (value: T) => void, value: T) => {
        try {
          run(value);
        } catch (error) {
          end(error);
        }
      };
      const end = (reason: unknown) => {
        clearTimeout(quiet);
        source.close();
        reject(reason);
      };

      for (const type of types) source.addEventListener(type, (event) => attempt(take, event));
      source.onerror = () => end(new Error('the connection was lost'));
      signal.addEventListener('abort', () => end(signal.reason));
    });
  },
};

type Placed = Pick<Event, 'type'> & { readonly watch: string; readonly revision?: string };

/** How far the last id goes, and what has come since. */
class Covered {
  readonly #revisions = new Map<string, string>(); // by watch
  #since: Placed[] = [];

  add(event: Placed): void {
    this.#since.push(event);
  }

  /** What has come since may be complete: an event beyond the last id has another one to come, its own or that of its transaction. */
  get mayBeComplete(): boolean {
    return this.#since.every(({ watch, revision }) => !revision || reaches(this.#revisions.get(watch) ?? '', revision));
  }

  /** An id has come, or is the last one again. */
  settle(): void {
    for (const { type, watch, revision } of this.#since) {
      if (type === 'reset')
        this.#revisions.delete(watch); // revisions may be of another order
      else if (revision && reaches(revision, this.#revisions.get(watch) ?? '')) this.#revisions.set(watch, revision);
    }
    this.#since = [];
  }
}
