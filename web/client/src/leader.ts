import type { Hub } from './hub.js';

/** What is said where all tabs hear it: that a tab is there, and that one leads from now on. */
export type Lobby = { readonly tab: string } | { readonly leader: true };

/** The tab that leads: has the hub, and serves each tab through a channel of its own, which no other tab has to read. */
export class Leader {
  readonly #lobby: BroadcastChannel;
  readonly #channels = new Map<string, BroadcastChannel>();

  constructor(private readonly name: string, private readonly hub: Hub) {
    this.#lobby = new BroadcastChannel(name);
    this.#lobby.addEventListener('message', ({ data }: MessageEvent<Lobby>) => {
      if ('tab' in data && !this.#channels.has(data.tab)) this.#serve(data.tab);
    });
    this.#lobby.postMessage({ leader: true } satisfies Lobby);
  }

  close(): void {
    this.hub.rest();
    this.#lobby.close();
    for (const channel of this.#channels.values()) channel.close();
  }

  #serve(tab: string): void {
    const channel = new BroadcastChannel(`${this.name} ${tab}`);
    this.#channels.set(tab, channel);
    const leave = this.hub.serve(channel, () => {
      leave();
      channel.close();
      this.#channels.delete(tab);
    });
  }
}
