import type { Followed } from './shared_watch.js';
import type { HubStatusEvent } from './port.js';
import type { BookmarkEvent, DeleteEvent, EndOfSnapshotEvent, ResetEvent } from './protocol.js';
import type { Changes } from './replica.js';
import type { View } from './view.js';

/** One watch of a stream to a tab: what the tab was told of it, and what it was not. */
export class Part {
  readonly mode: 'snapshot' | 'resume';
  readonly leave: () => void;
  /** Where the tab is with the last news; empty before the first snapshot. */
  position = '';
  #whole: boolean;    // a snapshot is owed
  #catchUp: boolean;  // or the end of a resume is
  #keys: Set<string>; // or these
  #told: Pick<View, 'state' | 'since' | 'reason' | 'revision'> | undefined;

  constructor(private readonly followed: Followed, private readonly prefix: string, lastEventId: string, changed: () => void) {
    this.leave = followed.join(prefix, (changes) => {
      this.#note(changes);
      changed();
    });
    const keys = followed.since(lastEventId, prefix);
    this.mode = keys ? 'resume' : 'snapshot';
    this.#whole = !keys;
    this.#catchUp = keys !== undefined;
    this.#keys = keys ?? new Set();
  }

  get watch(): string {
    return this.followed.watch;
  }

  /** The gateway refuses the watch. */
  get closed(): boolean {
    return this.followed.closed;
  }

  get error(): Error | undefined {
    return this.followed.view.error;
  }

  /** It is on its way from the gateway for the first time, and nothing is amiss. */
  get begins(): boolean {
    const { state, reason } = this.followed.view;
    return (state === 'connecting' || state === 'priming') && reason === '';
  }

  /** There is a snapshot to tell. */
  get owes(): boolean {
    return this.#whole && this.followed.view.revision !== '';
  }

  /** What the tab does not know yet, in events that make one consistent change. */
  news(): string[] {
    const { view } = this.followed;
    const lines = this.owes ? this.#snapshot(view) : this.#whole ? [] : this.#changes(view);
    const { state, since, reason, revision } = view;
    const told = this.#told;
    if (told?.state !== state || told.since !== since || told.reason !== reason) lines.push(status(this.watch, view));
    this.#told = { state, since, reason, revision };
    this.position = this.#whole ? '' : this.followed.position(this.prefix);
    return lines;
  }

  #note(changes: Changes): void {
    this.#whole ||= changes.replaced;
    for (const key of changes.keys) this.#keys.add(key);
  }

  #snapshot({ resources, revision }: View<string>): string[] {
    this.#whole = this.#catchUp = false;
    this.#keys.clear();
    const lines = [line<ResetEvent>({ type: 'reset', watch: this.watch, reason: 'initial' })];
    for (const [key, { value }] of resources) if (this.#wants(key)) lines.push(value);
    lines.push(line<EndOfSnapshotEvent>({ type: 'end_of_snapshot', watch: this.watch, revision, count: lines.length - 1 }));
    return lines;
  }

  // At the end of the changes the tab is where the hub is, whatever it did not see
  // one by one.
  #changes({ resources, revision }: View<string>): string[] {
    const { watch } = this;
    const lines = [...this.#keys].filter((key) => this.#wants(key)).map((key) => resources.get(key)?.value ?? gone(watch, key, revision));
    this.#keys.clear();
    if (this.#catchUp) lines.push(line<EndOfSnapshotEvent>({ type: 'end_of_snapshot', watch, revision, count: this.#count(resources), resumed: true }));
    else if (lines.length > 0 || revision !== this.#told?.revision) lines.push(line<BookmarkEvent>({ type: 'bookmark', watch, revision }));
    this.#catchUp = false;
    return lines;
  }

  #count(resources: View['resources']): number {
    return this.prefix ? [...resources.keys()].filter((key) => this.#wants(key)).length : resources.size;
  }

  #wants(key: string): boolean {
    return this.prefix === '' || begins(key, this.prefix);
  }
}

const line = <E>(event: E): string => JSON.stringify(event);

function status(watch: string, { state, since, reason }: View): string {
  return line<HubStatusEvent>({ type: 'status', watch, state: state as HubStatusEvent['state'], since: new Date(since).toISOString(), reason });
}

// A key that is not UTF-8 stands in the map in base64, behind a lone surrogate.
const encoded = (key: string) => key[0] === '\udfff';

function gone(watch: string, key: string, revision: string): string {
  const named = encoded(key) ? { key: key.slice(1), key_encoding: 'base64' as const } : { key };
  return line<DeleteEvent>({ type: 'delete', watch, revision, ...named });
}

// A prefix is one of bytes.
function begins(key: string, prefix: string): boolean {
  if (!encoded(key)) return key.startsWith(prefix);
  return atob(key.slice(1)).startsWith(String.fromCharCode(...new TextEncoder().encode(prefix)));
}
