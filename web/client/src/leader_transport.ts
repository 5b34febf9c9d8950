import type { Hub } from './hub.js';
import { Leader, type Lobby } from './leader.js';
import { Leadership } from './leader_election.js';
import { sharedTransport } from './port_transport.js';
import type { Receiver, StreamRequest, Transport } from './transport.js';
import { unique } from './unique_id.js';

// A stream that ends is often followed by another one: for other watches, say.
const lingerMs = 1_000;

/**
 * Reads streams from a hub in one of the tabs, for where there is no SharedWorker.
 * A tab that reads is ready to lead. One that does not read any more, since it was
 * closed or hidden for long, passes that on; so does one that the browser freezes.
 *
 * A tab that leads may be hidden. Chrome on a desktop does not freeze who holds a
 * Web Lock (developer.chrome.com/blog/freezing-on-energy-saver), but on Android it
 * freezes any tab that was hidden for minutes
 * (chromium.googlesource.com: performance_manager/docs/freezing_opt_out_opt_in.md),
 * and an operating system may do so without a word. Hence the `freeze` event, and
 * hence a tab that gets no answer seizes the lead. Timers of a hidden tab are late
 * by up to a minute: the hub is reminded by who asks it.
 */
export class ElectedTransport implements Transport {
  readonly hearsHeartbeat = true;
  readonly #leadership: Leadership;
  #reads = 0;
  #way: Way | undefined;
  #leaving: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly name: string, newHub: () => Hub, failed: () => void) {
    let hub: Hub | undefined; // it goes on where it rested, when this tab leads again
    const lead = () => {
      const leader = new Leader(name, hub ??= newHub());
      return () => leader.close();
    };
    this.#leadership = new Leadership(name, lead, failed);
  }

  async read(request: StreamRequest, receiver: Receiver): Promise<void> {
    const way = this.#enter();
    way.greet();
    try {
      await way.transport.read(request, receiver);
    } finally {
      if (--this.#reads === 0) this.#leaving = setTimeout(() => this.#leave(), lingerMs);
    }
  }

  #enter(): Way {
    this.#reads++;
    clearTimeout(this.#leaving);
    if (this.#way) return this.#way;
    globalThis.document?.addEventListener('freeze', this.#still);
    globalThis.document?.addEventListener('resume', this.#awake);
    globalThis.addEventListener?.('pagehide', this.#still);
    globalThis.addEventListener?.('pageshow', this.#awake);
    this.#leadership.enter();
    return this.#way = new Way(this.name, () => this.#leadership.seize());
  }

  #leave(): void {
    globalThis.document?.removeEventListener('freeze', this.#still);
    globalThis.document?.removeEventListener('resume', this.#awake);
    globalThis.removeEventListener?.('pagehide', this.#still);
    globalThis.removeEventListener?.('pageshow', this.#awake);
    this.#leadership.leave();
    this.#way?.close();
    this.#way = undefined;
  }

  readonly #still = (): void => this.#leadership.leave();

  readonly #awake = (): void => this.#leadership.enter();

}

/** The way from a tab to the one that leads: a channel for the two of them, and a lobby in which they meet. */
class Way {
  readonly transport: Transport;
  readonly #tab = unique();
  readonly #lobby: BroadcastChannel;
  readonly #channel: BroadcastChannel;

  constructor(name: string, deaf: () => void) {
    this.#lobby = new BroadcastChannel(name);
    this.#channel = new BroadcastChannel(`${name} ${this.#tab}`);
    this.transport = sharedTransport(this.#channel, deaf);
    this.#lobby.addEventListener('message', ({ data }: MessageEvent<Lobby>) => {
      if ('leader' in data) this.greet();
    });
  }

  greet(): void {
    this.#lobby.postMessage({ tab: this.#tab } satisfies Lobby);
  }

  close(): void {
    this.#lobby.close();
    this.#channel.close();
  }
}
