import type { RawSnapshot } from './initial_snapshots.js';
import type { Problem } from './protocol.js';

/**
 * The version of these messages. After an upgrade of the page, an old tab may keep
 * the old worker alive: a new tab then uses another transport.
 */
export const dialect = 5;

/** Carries messages between tabs and a hub: a MessagePort, or a BroadcastChannel of the two. */
export interface Port {
  postMessage(message: unknown): void;
  /** `close`: the other end is gone. Not every browser reports that, and a BroadcastChannel never does. */
  addEventListener(type: 'message' | 'close', listener: (event: MessageEvent) => void): void;
  removeEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  /** For ports that hold messages back until it is called. */
  start?(): void;
}

/** From a tab to the hub, about one stream of the tab. */
export type TabMessage = {
  readonly stream: number;
} /** Begin: `watch=a&watch=b&prefix.b=…&filter.b=…&max_rate=…`, the newest id that the tab has, the tag of its principal (none where there are no sessions), and the snapshots that it goes on from. */ & (
  | { readonly query: string; readonly lastEventId: string; readonly tag?: string; readonly snapshots?: readonly RawSnapshot[] }
  /** `more`: the events are processed, and the next may be sent. `alive`: a ping, which is answered. `hurry`: an attempt to connect is more likely to succeed now. */
  | { readonly say: 'more' | 'alive' | 'end' | 'hurry' }
  /** Moves a window: `watch=a&limit=50&offset=…`. */
  | { readonly move: string }
);

/**
 * From the hub to a tab: that it serves this port from now on, and under which name.
 * Or about one stream: events that are complete up to the id, the reason why there
 * are none, the answer to `move`, or, as the answer to `alive`, nothing.
 */
export type HubMessage =
  | { readonly hub: string; readonly dialect: number }
  | {
      readonly stream: number;
      readonly events?: readonly string[];
      readonly id?: string;
      /** The number of a move: the answer to each `move`, in their order. 0: it cannot be moved. */
      readonly moved?: number;
      readonly refused?: {
        readonly status: number;
        readonly problem: Problem | undefined;
        readonly reason?: string;
        readonly final?: boolean;
      };
    };
