import { RefusedError } from './errors.js';
import { dialect, type Ask, type Port, type Tell } from './port.js';
import type { Receiver, StreamRequest, Transport } from './transport.js';

// It is the tab that asks whether the hub is alive: the timers of a tab that is
// looked at can be relied on. Those of a hidden one, in which the hub may live, come
// up to a minute late, but a message it answers at once.
const askMs = 8_000;

// So many times it was asked in vain, and the hub is dead, or frozen. A tab that was
// frozen itself has asked once when it thaws.
const deafAfter = 2;

/**
 * Reads streams from a hub: `watch(url, { transport: sharedTransport(worker.port) })`.
 * deaf is called when the hub does not answer, long before the stream is given up, or
 * when it is of another version.
 */
export function sharedTransport(port: Port, deaf: () => void = () => {}): Transport {
  const readers = new Set<Reader>();
  let hub = '';
  let streams = 0;
  // Another hub has taken over: the streams begin anew, each behind what it has.
  port.addEventListener('message', ({ data }: MessageEvent<Tell>) => {
    if (!('hub' in data)) return;
    if (data.dialect !== dialect) return deaf();
    hub = data.hub;
    for (const reader of readers) reader.ask(++streams);
  });
  port.start?.();
  return {
    hearsHeartbeat: true,
    async read(request, receiver) {
      const reader = new Reader(port, request, receiver, deaf);
      readers.add(reader);
      if (hub) reader.ask(++streams);
      await reader.ended.finally(() => readers.delete(reader));
    },
  };
}

/** One stream of a tab, until the tab has enough of it, or the hub refuses it. */
class Reader {
  readonly ended: Promise<never>;
  readonly #reject: (reason: unknown) => void;
  readonly #timer: ReturnType<typeof setInterval>;
  #stream = 0;
  #id: string;
  #unanswered = 0;

  constructor(
    private readonly port: Port,
    private readonly request: StreamRequest,
    private readonly receiver: Receiver,
    private readonly deaf: () => void,
  ) {
    let settle: (reason: unknown) => void = () => {};
    this.ended = new Promise<never>((_, reject) => { settle = reject; });
    this.#reject = settle;
    this.#id = request.lastEventId;
    port.addEventListener('message', this.#hear);
    this.#timer = setInterval(() => this.#beat(), askMs);
    request.signal.addEventListener('abort', () => this.#end(request.signal.reason));
  }

  // Under a new number each time: what a hub that was replaced still has to say is
  // not meant for this stream any more.
  ask(stream: number): void {
    this.#say('end');
    this.#stream = stream;
    this.receiver.alive();
    const { url } = this.request;
    this.#post({ stream, query: url.slice(url.indexOf('?') + 1), lastEventId: this.#id });
  }

  readonly #hear = ({ data }: MessageEvent<Tell>): void => {
    if (!('stream' in data) || data.stream !== this.#stream) return;
    this.#unanswered = 0;
    this.receiver.alive();
    try {
      this.#take(data);
    } catch (error) { // an event that cannot be read
      this.#end(error);
    }
  };

  #take({ events, id, refused }: Extract<Tell, { stream: number }>): void {
    if (refused) return this.#end(new RefusedError(refused.status, refused.problem, undefined));
    if (!events) return;
    for (const event of events) this.receiver.event(event);
    if (id) this.receiver.id(this.#id = id);
    this.receiver.flush();
    this.#say('more');
  }

  #beat(): void {
    if (this.#unanswered++ >= deafAfter) this.deaf();
    this.#say('alive');
  }

  #end(reason: unknown): void {
    clearInterval(this.#timer);
    this.port.removeEventListener('message', this.#hear);
    this.#say('end');
    this.#stream = 0;
    this.#reject(reason);
  }

  #say(say: 'more' | 'alive' | 'end'): void {
    if (this.#stream) this.#post({ stream: this.#stream, say });
  }

  #post(ask: Ask): void {
    this.port.postMessage(ask);
  }
}
