import { RefusedError } from './errors.js';
import type { Hub } from './hub.js';
import type { Tell } from './port.js';
import { Part } from './subscription.js';
import type { HelloEvent } from './protocol.js';

// After twice this long without an answer the tab gives up the stream. It asks more
// often, but the timers of a hidden tab may come a minute apart.
const heartbeatMs = 40_000;

// How much goes into one message, in characters: a large snapshot must keep neither
// side from other work for long.
const sliceLength = 1 << 19;

type Message = Omit<Extract<Tell, { stream: number }>, 'stream'>;

/**
 * One stream to a tab. The next message waits until the last one was taken in; what
 * changes meanwhile is told as it is then. So a tab that is slow, or frozen, costs
 * the names of some keys, and a snapshot is put together when there is room for it.
 */
export class TabStream {
  readonly #parts: Part[];
  readonly #hello: string[];  // until it is sent
  #lines: string[] = [];      // that are to be sent
  #sent = 0;                  // of them
  #begun: string | undefined; // the id within them, if they are a snapshot
  #id = '';                   // behind them
  #ready = true;              // the tab took in what it was sent
  #quiet: boolean;            // the first moments of the hub are not told
  #due = false;
  #ended = false;

  constructor(private readonly hub: Hub, query: URLSearchParams, lastEventId: string, private readonly tell: (message: Message) => void) {
    this.#parts = query.getAll('watch').map((watch) =>
      new Part(hub.follow(watch), query.get(`prefix.${watch}`) ?? '', lastEventId, () => this.#schedule()));
    const watches = this.#parts.map(({ watch, mode }) => ({ watch, mode }));
    this.#hello = [JSON.stringify({ type: 'hello', heartbeat_ms: heartbeatMs, watches } satisfies HelloEvent)];
    this.#quiet = lastEventId !== '';
    this.#schedule();
  }

  /** The tab asks whether the hub is alive. */
  asked(): void {
    this.#quiet = false;
    this.#schedule();
  }

  /** The tab took in what it was sent. */
  more(): void {
    this.#ready = true;
    this.#send();
  }

  end(): void {
    this.#ended = true;
    for (const part of this.#parts) part.leave();
  }

  // What the hub learns in one go becomes one change in the tab.
  #schedule(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => {
      this.#due = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#ended) return;
    const refused = this.#parts.find(({ closed }) => closed);
    if (refused) return this.#refuse(refused);
    if (!this.#ready || this.#waits) return;
    if (this.#sent === this.#lines.length) this.#fill();
    if (this.#sent === this.#lines.length) return;
    this.#ready = false;
    const events = this.#slice();
    const id = this.#sent === this.#lines.length ? this.#id : this.#begun;
    this.tell({ events, ...(id && { id }) });
  }

  // A tab that comes from a hub which was well is not troubled by the first moments
  // of this one. If they last until the tab asks, it is told.
  get #waits(): boolean {
    return this.#quiet && this.#parts.every(({ begins }) => begins);
  }

  // A snapshot comes alone: in the middle of it nothing is shown, so that the tab
  // can put away what it has.
  #fill(): void {
    const snapshot = this.#parts.find(({ owes }) => owes);
    this.#begun = snapshot && (this.#position || '-');
    const news = snapshot ? snapshot.news() : this.#parts.flatMap((part) => part.news());
    this.#lines = this.#hello.splice(0).concat(news);
    this.#id = this.#position;
    this.#sent = 0;
  }

  get #position(): string {
    return this.#parts.map(({ position }) => position).filter(Boolean).join();
  }

  #slice(): string[] {
    const from = this.#sent;
    for (let length = 0; length < sliceLength && this.#sent < this.#lines.length; this.#sent++) length += this.#lines[this.#sent]!.length;
    return this.#lines.slice(from, this.#sent);
  }

  #refuse({ watch, error }: Part): void {
    const refusal = error instanceof RefusedError ? error : new RefusedError(502, undefined, undefined);
    const { status, problem } = refusal;
    // It is for this watch that there is no room: the gateway cannot know which came last.
    this.tell({ refused: { status, problem: status === 414 ? { ...problem!, watch } : problem } });
    this.end();
    this.hub.refused(watch, refusal);
  }
}
