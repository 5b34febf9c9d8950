import { RefusedError } from './errors.js';
import type { RawSnapshot } from './initial_snapshots.js';
import { dialect, type HubMessage, type Port, type TabMessage } from './port.js';
import { type Receiver, replaced, type StreamRequest, type Transport } from './transport.js';

// The tab asks the hub whether it is alive, because the timers of a visible tab are
// reliable. The hub may live in a hidden tab, where timers are up to a minute late,
// but a message is answered at once.
const pingMs = 8_000;

// After this many unanswered pings the hub is dead or frozen. A tab that was frozen
// itself has sent one ping when it thaws.
const maxUnanswered = 2;

/**
 * Reads streams from a hub: `watch(url, { transport: sharedTransport(worker.port) })`.
 * onUnresponsive is called when the hub does not answer, long before the stream is
 * given up, or when it is of another version. tag is that of the principal whose data is read. onHub is called
 * when a hub of this version answers.
 */
export function sharedTransport(port: Port, onUnresponsive: () => void = () => {}, tag?: string, onHub: () => void = () => {}): Transport {
  const readers = new Set<Reader>();
  const ends: Array<() => void> = []; // of streams that were replaced, until the next ones have begun: the hub goes on following their watches
  let hub = '';
  let streams = 0;
  // Another hub has taken over: each stream begins again, after what it has.
  port.addEventListener('message', ({ data }: MessageEvent<HubMessage>) => {
    if (!('hub' in data)) return;
    if (data.dialect !== dialect) return onUnresponsive();
    hub = data.hub;
    onHub();
    for (const reader of readers) reader.request(++streams);
  });
  port.start?.();
  return {
    hearsHeartbeat: true,
    hold: () => () => endAll(ends),
    post: ({ url }) => {
      const [, stream, query] = /\/streams\/(\d+)\/window\?(.*)$/.exec(url) ?? [];
      const reader = [...readers].find((one) => one.stream === Number(stream));
      return reader ? reader.move(query!) : Promise.resolve(moved(0)); // another hub has taken over
    },
    hurry: () => readers.forEach((reader) => reader.say('hurry')),
    async read(request, receiver) {
      const reader = new Reader(port, request, receiver, onUnresponsive, tag, ends);
      readers.add(reader);
      if (hub) reader.request(++streams);
      endAll(ends);
      await reader.ended.finally(() => readers.delete(reader));
    },
  };
}

const endAll = (ends: Array<() => void>) => {
  for (const end of ends.splice(0)) end();
};

// As a gateway answers.
const moved = (move: number) => new Response(JSON.stringify({ move }), { status: move ? 200 : 404 });

/** One stream of a tab, until the tab ends it, or the hub refuses it. */
class Reader {
  readonly ended: Promise<never>;
  readonly #reject: (reason: unknown) => void;
  readonly #timer: ReturnType<typeof setInterval>;
  /** The number of its newest request; 0: it has ended. */
  stream = 0;
  #moves: Array<(answer: Response) => void> = []; // those that wait for an answer
  #id: string;
  #unanswered = 0;

  constructor(
    private readonly port: Port,
    private readonly streamRequest: StreamRequest,
    private readonly receiver: Receiver,
    private readonly onUnresponsive: () => void,
    private readonly tag: string | undefined,
    private readonly ends: Array<() => void>,
  ) {
    let settle: (reason: unknown) => void = () => {};
    this.ended = new Promise<never>((_, reject) => {
      settle = reject;
    });
    this.#reject = settle;
    this.#id = streamRequest.lastEventId;
    port.addEventListener('message', this.#receive);
    this.#timer = setInterval(() => this.#ping(), pingMs);
    streamRequest.signal.addEventListener('abort', () => this.#end(streamRequest.signal.reason));
  }

  // Each request has a new number: messages that a replaced hub still sends are not
  // for this stream.
  request(stream: number): void {
    this.say('end');
    this.stream = stream;
    this.#moves = [];
    this.receiver.alive();
    const url = this.streamRequest.current?.() ?? this.streamRequest.url;
    const query = url.slice(url.indexOf('?') + 1);
    this.#post({ stream, query, lastEventId: this.#id, snapshots: this.#snapshots, ...(this.tag !== undefined && { tag: this.tag }) });
  }

  // Not those that the tab is beyond.
  get #snapshots(): readonly RawSnapshot[] {
    const positions = this.#id.split(',');
    return this.streamRequest.snapshots?.filter(({ position }) => positions.includes(position)) ?? [];
  }

  readonly #receive = ({ data }: MessageEvent<HubMessage>): void => {
    if (!('stream' in data) || data.stream !== this.stream) return;
    this.#unanswered = 0;
    this.receiver.alive();
    try {
      this.#take(data);
    } catch (error) {
      // an event that cannot be read
      this.#end(error);
    }
  };

  /** Moves a window. If another hub takes over, there is no answer: it is told where the window is to be. */
  move(query: string): Promise<Response> {
    this.#post({ stream: this.stream, move: query });
    return new Promise((resolve) => this.#moves.push(resolve));
  }

  #take({ events, id, moved: move, refused }: Extract<HubMessage, { stream: number }>): void {
    if (move !== undefined) return this.#moves.shift()?.(moved(move));
    if (refused) return this.#end(new RefusedError(refused.status, refused.problem, undefined, refused.reason, refused.final));
    if (!events) return;
    for (const event of events) this.receiver.event(event);
    if (id) this.receiver.id((this.#id = id));
    this.receiver.flush();
    this.say('more');
  }

  #ping(): void {
    if (this.#unanswered++ >= maxUnanswered) this.onUnresponsive();
    this.say('alive');
  }

  #end(reason: unknown): void {
    clearInterval(this.#timer);
    this.port.removeEventListener('message', this.#receive);
    const { stream } = this;
    this.stream = 0;
    const end = () => {
      if (stream) this.#post({ stream, say: 'end' });
    };
    (reason as Error | undefined)?.message === replaced ? this.ends.push(end) : end();
    this.#reject(reason);
  }

  say(say: 'more' | 'alive' | 'end' | 'hurry'): void {
    if (this.stream) this.#post({ stream: this.stream, say });
  }

  #post(message: TabMessage): void {
    this.port.postMessage(message);
  }
}
