import type { Hub } from './hub.js';
import { type Announcement, Leader } from './leader.js';
import { LeaderElection } from './leader_election.js';
import { sharedTransport } from './port_transport.js';
import type { AnswerRequest, Receiver, StreamRequest, Transport } from './transport.js';
import { uniqueId } from './unique_id.js';

// A stream that ends is often followed by another one, for other watches for
// example.
const lingerMs = 1_000;

/**
 * Reads streams from a hub in one of the tabs, the leader, for browsers without
 * SharedWorker. A tab that reads is a candidate. A tab resigns when it no longer
 * reads, because it was closed or hidden for too long, and when the browser freezes
 * it.
 *
 * The leader may be hidden. Chrome on a desktop does not freeze a tab that holds a
 * Web Lock (developer.chrome.com/blog/freezing-on-energy-saver), but on Android it
 * freezes any tab that was hidden for minutes
 * (chromium.googlesource.com: performance_manager/docs/freezing_opt_out_opt_in.md),
 * and an operating system may do so without notice. That is why there is a listener
 * for `freeze`, and why a tab that gets no answer takes over. The timers of a hidden
 * tab are late by up to a minute: messages from other tabs remind its hub.
 */
export class LeaderTransport implements Transport {
  readonly hearsHeartbeat = true;
  readonly #election: LeaderElection;
  #reads = 0;
  #channel: LeaderChannel | undefined;
  #closing: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly name: string,
    newHub: () => Hub,
    failed: () => void,
    private readonly tag?: string,
  ) {
    let hub: Hub | undefined; // kept, to resume when this tab is elected again
    const elected = () => {
      const leader = new Leader(name, (hub ??= newHub()));
      return () => leader.close();
    };
    this.#election = new LeaderElection(name, elected, failed);
  }

  async read(request: StreamRequest, receiver: Receiver): Promise<void> {
    const channel = this.#open();
    channel.announce();
    try {
      await channel.transport.read(request, receiver);
    } finally {
      this.#release();
    }
  }

  hold(): () => void {
    if (!this.#channel) return () => {};
    this.#reads++;
    clearTimeout(this.#closing);
    const release = this.#channel.transport.hold!();
    return () => {
      release();
      this.#release();
    };
  }

  post(request: AnswerRequest): Promise<Response> {
    return this.#open().transport.post!(request).finally(() => this.#release());
  }

  hurry(): void {
    this.#channel?.transport.hurry?.();
  }

  #open(): LeaderChannel {
    this.#reads++;
    clearTimeout(this.#closing);
    if (this.#channel) return this.#channel;
    globalThis.document?.addEventListener('freeze', this.#suspend);
    globalThis.document?.addEventListener('resume', this.#resume);
    globalThis.addEventListener?.('pagehide', this.#suspend);
    globalThis.addEventListener?.('pageshow', this.#resume);
    this.#election.campaign();
    return (this.#channel = new LeaderChannel(this.name, () => this.#election.takeOver(), this.tag));
  }

  #release(): void {
    if (--this.#reads === 0) this.#closing = setTimeout(() => this.#close(), lingerMs);
  }

  #close(): void {
    globalThis.document?.removeEventListener('freeze', this.#suspend);
    globalThis.document?.removeEventListener('resume', this.#resume);
    globalThis.removeEventListener?.('pagehide', this.#suspend);
    globalThis.removeEventListener?.('pageshow', this.#resume);
    this.#election.resign();
    this.#channel?.close();
    this.#channel = undefined;
  }

  readonly #suspend = (): void => this.#election.resign();

  readonly #resume = (): void => this.#election.campaign();
}

/** Connects a tab with the leader: one channel for the two of them, and one for announcements to all tabs. */
class LeaderChannel {
  readonly transport: Transport;
  readonly #tab = uniqueId();
  readonly #announcements: BroadcastChannel;
  readonly #channel: BroadcastChannel;

  constructor(name: string, onUnresponsive: () => void, tag: string | undefined) {
    this.#announcements = new BroadcastChannel(name);
    this.#channel = new BroadcastChannel(`${name} ${this.#tab}`);
    this.transport = sharedTransport(this.#channel, onUnresponsive, tag);
    this.#announcements.addEventListener('message', ({ data }: MessageEvent<Announcement>) => {
      if ('leader' in data) this.announce();
    });
  }

  announce(): void {
    this.#announcements.postMessage({ tab: this.#tab } satisfies Announcement);
  }

  close(): void {
    this.#announcements.close();
    this.#channel.close();
  }
}
