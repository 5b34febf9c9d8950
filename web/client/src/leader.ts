import type { Hub } from './hub.js';

/** A message to all tabs: a tab announces itself to the leader, or a new leader announces itself. */
export type Announcement = { readonly tab: string } | { readonly leader: true };

/** Runs in the leader tab: serves each tab from the hub, over a channel that no other tab has to read. */
export class Leader {
  readonly #announcements: BroadcastChannel;
  readonly #channels = new Map<string, BroadcastChannel>();

  constructor(
    private readonly name: string,
    private readonly hub: Hub,
  ) {
    this.#announcements = new BroadcastChannel(name);
    this.#announcements.addEventListener('message', ({ data }: MessageEvent<Announcement>) => {
      if ('tab' in data && !this.#channels.has(data.tab)) this.#serve(data.tab);
    });
    this.#announcements.postMessage({ leader: true } satisfies Announcement);
  }

  close(): void {
    this.hub.rest();
    this.#announcements.close();
    for (const channel of this.#channels.values()) channel.close();
  }

  #serve(tab: string): void {
    const channel = new BroadcastChannel(`${this.name} ${tab}`);
    this.#channels.set(tab, channel);
    const stop = this.hub.serve(channel, () => {
      stop();
      channel.close();
      this.#channels.delete(tab);
    });
  }
}
