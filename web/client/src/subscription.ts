import type { RawSnapshot } from './initial_snapshots.js';
import type { BookmarkEvent, DeleteEvent, EndOfSnapshotEvent, ResetEvent } from './protocol.js';
import type { Changes, Place } from './replica.js';
import type { SharedWatch } from './shared_watch.js';
import { keysOf } from './spec.js';
import type { HubStatusEvent, View } from './view.js';

/** From where a tab follows a watch. */
export interface SubscriptionStart {
  readonly prefix: string;
  readonly lastEventId: string;
  /** What the tab shows, if it is not from a hub. */
  readonly snapshot?: RawSnapshot | undefined;
  /** The keys of what the tab is to have before all others; empty: none. */
  readonly first: string;
}

/** One watch of a stream to a tab: what the tab has received of it, and what it has not. */
export class Subscription {
  readonly mode: 'snapshot' | 'resume';
  /** What it follows. A window that has moved may be another one. */
  shared: SharedWatch;
  #unsubscribe: () => void;
  #next: { readonly shared: SharedWatch; readonly unsubscribe: () => void } | undefined; // where a window moves, until that is there
  #move = 0; // the number of the newest move, until the tab has been told that it is done
  #waits: boolean; // it is of a window that others have moved, and which is not there yet
  private readonly prefix: string;
  /** The position of the tab after the last events; empty before the first snapshot. */
  position = '';
  readonly #first: readonly string[]; // the keys that are to come first
  #firstSent: View['first']; // what was sent of them
  #snapshotDue: boolean; // a snapshot is to be sent
  #resumeEndDue: boolean; // or the end of a resume
  #changed: Set<string>; // or these keys
  #sent: Pick<View, 'state' | 'since' | 'reason' | 'revision' | 'verifiedAt' | 'place'> | undefined;

  constructor(
    shared: SharedWatch,
    { prefix, lastEventId, snapshot, first }: SubscriptionStart,
    private readonly onChange: () => void,
  ) {
    this.shared = shared;
    this.prefix = prefix;
    this.#waits = shared.moving;
    this.#unsubscribe = shared.subscribe(prefix, (changes) => this.#add(shared, changes), { snapshot, first });
    this.#first = keysOf(first);
    const keys = snapshot && shared.isAt(snapshot.position) ? new Set<string>() : shared.since(lastEventId, prefix);
    this.mode = keys ? 'resume' : 'snapshot';
    this.#snapshotDue = !keys;
    this.#resumeEndDue = keys !== undefined;
    this.#changed = keys ?? new Set();
  }

  unsubscribe(): void {
    this.#next?.unsubscribe();
    this.#unsubscribe();
  }

  /** Moves a window: the tab is sent what differs, when all of it is there, with the number of the move. */
  move(to: SharedWatch, number: number): void {
    this.#move = number;
    if (to === this.#next?.shared) return;
    this.#next?.unsubscribe();
    this.#next = undefined;
    if (to === this.shared) return this.onChange();
    this.#next = { shared: to, unsubscribe: to.subscribe(this.prefix, (changes) => this.#add(to, changes)) };
    this.#arrive();
  }

  #arrive(): void {
    const { shared, unsubscribe } = this.#next!;
    const worse = this.shared.view.state === 'in_sync' && shared.view.state !== 'in_sync'; // it has what it had some time ago
    if (!shared.closed && (shared.view.revision === '' || shared.moving || worse)) return;
    const [before, after] = [this.shared.view.resources, shared.view.resources];
    for (const key of [...before.keys(), ...after.keys()]) {
      if (before.get(key)?.value !== after.get(key)?.value) this.#changed.add(key);
    }
    this.#unsubscribe();
    this.#unsubscribe = unsubscribe;
    this.shared = shared;
    this.#next = undefined;
    this.onChange();
  }

  // The tab is to be told of a move.
  get #moved(): boolean {
    return this.#move > 0 && !this.#next && !this.shared.moving;
  }

  // Nothing can be sent: what is there is another window.
  get #waiting(): boolean {
    this.#waits &&= this.shared.moving;
    return this.#waits;
  }

  get watch(): string {
    return this.shared.spec.watch;
  }

  /** The gateway refuses the watch. */
  get closed(): boolean {
    return this.shared.closed;
  }

  get error(): Error | undefined {
    return this.shared.view.error;
  }

  /** The watch is being loaded from the gateway for the first time, without any trouble. */
  get starting(): boolean {
    const { state, reason } = this.shared.view;
    return (state === 'connecting' || state === 'priming') && reason === '';
  }

  /** There is a snapshot to send. */
  get hasSnapshot(): boolean {
    return this.#snapshotDue && this.shared.view.revision !== '' && !this.#waiting;
  }

  // The resources that are to come first are there, and nothing else yet.
  get #hasFirst(): boolean {
    const { first, revision } = this.shared.view;
    return this.#snapshotDue && revision === '' && this.#first.length > 0 && first !== undefined && first !== this.#firstSent;
  }

  /** The tab has been sent what comes first, and not the snapshot. */
  get begun(): boolean {
    return this.#snapshotDue && this.#firstSent !== undefined;
  }

  /** There is something to send besides changes of resources. */
  get urgent(): boolean {
    const sent = this.#sent;
    return (
      this.hasSnapshot ||
      this.#hasFirst ||
      this.#resumeEndDue ||
      this.#moved ||
      !sent ||
      freshness.some((field) => sent[field] !== this.shared.view[field])
    );
  }

  /** Takes the events that the tab has not received yet, which make one consistent change. */
  takeEvents(): string[] {
    const { view } = this.shared;
    const lines = this.hasSnapshot
      ? this.#snapshot(view)
      : this.#hasFirst
        ? this.#beginning(view)
        : this.#snapshotDue || this.#waiting
          ? []
          : this.#changes(view);
    const { state, since, reason, revision, verifiedAt, place } = view;
    const sent = this.#sent;
    if (!sent || told.some((field) => sent[field] !== view[field])) lines.push(statusLine(this.watch, view));
    this.#sent = { state, since, reason, revision, ...(verifiedAt && { verifiedAt }), ...(place && { place }) };
    this.position = this.#snapshotDue || this.#waiting ? '' : this.shared.position(this.prefix);
    return lines;
  }

  #add(shared: SharedWatch, changes: Changes): void {
    if (shared === this.shared) {
      this.#snapshotDue ||= changes.replaced;
      for (const key of changes.keys) this.#changed.add(key);
      this.onChange();
    }
    if (this.#next) this.#arrive();
  }

  #beginning({ first }: View<string>): string[] {
    this.#firstSent = first;
    const values = this.#first.flatMap((key) => (this.#includes(key) && first?.get(key)?.value) || []);
    return [line<ResetEvent>({ type: 'reset', watch: this.watch, reason: 'initial' }), ...values];
  }

  #snapshot({ resources, revision, place }: View<string>): string[] {
    this.#snapshotDue = this.#resumeEndDue = false;
    this.#changed.clear();
    const lines = [line<ResetEvent>({ type: 'reset', watch: this.watch, reason: 'initial' })];
    for (const [key, { value }] of resources) if (this.#includes(key)) lines.push(value);
    lines.push(
      line<EndOfSnapshotEvent>({ type: 'end_of_snapshot', watch: this.watch, revision, count: lines.length - 1, ...this.#said(place) }),
    );
    return lines;
  }

  // At the end of the changes the tab is in the same state as the hub, even if it did
  // not see every change.
  #changes({ resources, revision, place }: View<string>): string[] {
    const { watch } = this;
    const lines = [...this.#changed]
      .filter((key) => this.#includes(key))
      .map((key) => resources.get(key)?.value ?? deleteLine(watch, key, revision));
    this.#changed.clear();
    if (this.#resumeEndDue)
      lines.push(
        line<EndOfSnapshotEvent>({
          type: 'end_of_snapshot',
          watch,
          revision,
          count: this.#count(resources),
          resumed: true,
          ...this.#said(place),
        }),
      );
    else if (lines.length > 0 || revision !== this.#sent?.revision || place !== this.#sent.place || this.#moved)
      lines.push(line<BookmarkEvent>({ type: 'bookmark', watch, revision, ...this.#said(place) }));
    this.#resumeEndDue = false;
    return lines;
  }

  // Without a next, nothing comes after the window.
  #said(place: Place | undefined) {
    const move = this.#moved && { move: this.#move };
    if (move) this.#move = 0;
    return place && { total: place.total, before: place.before, ...(place.next && { next: place.next }), ...move };
  }

  #count(resources: View['resources']): number {
    return this.prefix ? [...resources.keys()].filter((key) => this.#includes(key)).length : resources.size;
  }

  #includes(key: string): boolean {
    return this.prefix === '' || hasPrefix(key, this.prefix);
  }
}

const freshness = ['state', 'since', 'reason'] as const;
const told = [...freshness, 'verifiedAt'] as const;

const line = <E>(event: E): string => JSON.stringify(event);

function statusLine(watch: string, { state, since, reason, verifiedAt }: View): string {
  return line<HubStatusEvent>({
    type: 'status',
    watch,
    state: state as HubStatusEvent['state'],
    since: new Date(since).toISOString(),
    reason,
    ...(verifiedAt && { verified_at: new Date(verifiedAt).toISOString() }),
  });
}

// In the map, a key that is not UTF-8 is in base64, after a lone surrogate.
const isEncoded = (key: string) => key[0] === '\udfff';

function deleteLine(watch: string, key: string, revision: string): string {
  const named = isEncoded(key) ? { key: key.slice(1), key_encoding: 'base64' as const } : { key };
  return line<DeleteEvent>({ type: 'delete', watch, revision, ...named });
}

// Prefixes are compared by bytes.
function hasPrefix(key: string, prefix: string): boolean {
  if (!isEncoded(key)) return key.startsWith(prefix);
  return atob(key.slice(1)).startsWith(String.fromCharCode(...new TextEncoder().encode(prefix)));
}
