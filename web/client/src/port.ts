import type { Problem, StatusEvent } from './protocol.js';
import type { State } from './view.js';

/**
 * Which version of these messages this is. After an upgrade of the page, an old tab
 * may keep the old worker alive: a new tab then goes another way.
 */
export const dialect = 1;

/** What tabs and a hub talk through: a MessagePort, or a BroadcastChannel of the two. */
export interface Port {
  postMessage(message: unknown): void;
  /** `close`: the other end is gone. Not every browser says so, and a BroadcastChannel never does. */
  addEventListener(type: 'message' | 'close', listener: (event: MessageEvent) => void): void;
  removeEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  /** Where messages wait until it is called. */
  start?(): void;
}

/** From a tab to the hub, of one stream of the tab. */
export type Ask = { readonly stream: number } & (
  /** Begin: `watch=a&watch=b&prefix.b=…`, and the newest id that the tab has. */
  | { readonly query: string; readonly lastEventId: string }
  /** `more`: the events are taken in, and the next may come. `alive`: answer, if you are. */
  | { readonly say: 'more' | 'alive' | 'end' }
);

/**
 * From the hub to a tab: that it serves this port from now on, and under which name.
 * Or of one stream: events that belong together up to the id, why there are none,
 * or, as the answer to `alive`, nothing.
 */
export type Tell =
  | { readonly hub: string; readonly dialect: number }
  | {
    readonly stream: number;
    readonly events?: readonly string[];
    readonly id?: string;
    readonly refused?: { readonly status: number; readonly problem: Problem | undefined };
  };

/** A hub tells of its own connection what no gateway could tell of its. */
export type HubStatusEvent = Omit<StatusEvent, 'state'> & { readonly state: StatusEvent['state'] | Extract<State, 'offline' | 'connecting'> };
