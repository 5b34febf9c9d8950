import type { Hub } from './hub.js';
import { dialect, type Ask, type Port, type Tell } from './port.js';
import { TabStream } from './tab_stream.js';
import { unique } from './unique_id.js';

const listenMs = 40_000;

// A tab that was not heard for so many times listenMs is gone, or frozen: not every
// port says so. Even a hidden tab, whose timers are late, asks every minute. One that
// thaws finds that its streams were silent, and asks for others.
const patience = 4;

/** A tab as the hub sees it: its port and its streams, for as long as it is heard. */
export class Tab {
  readonly #streams = new Map<number, TabStream>();
  #listening: ReturnType<typeof setInterval> | undefined;
  #unheard = 0;

  constructor(private readonly hub: Hub, private readonly port: Port, private readonly silent: () => void) {
    port.addEventListener('message', this.#hear);
    port.addEventListener('close', () => this.close());
    port.start?.();
    this.#heard();
    this.#tell({ hub: unique(), dialect });
  }

  close(): void {
    this.port.removeEventListener('message', this.#hear);
    this.#rest();
  }

  readonly #hear = ({ data }: MessageEvent<Ask>): void => {
    const { stream } = data;
    this.#heard();
    if ('query' in data) return this.#begin(data);
    if (data.say === 'more') return this.#streams.get(stream)?.more();
    if (data.say === 'end') return this.#end(stream);
    this.hub.check();
    if (this.#streams.has(stream)) this.#answer(stream);
  };

  #begin({ stream, query, lastEventId }: Extract<Ask, { query: string }>): void {
    const begun = new TabStream(this.hub, new URLSearchParams(query), lastEventId, (message) => this.#tell({ stream, ...message }));
    this.#streams.set(stream, begun);
  }

  #answer(stream: number): void {
    this.#tell({ stream });
    this.#streams.get(stream)?.asked();
  }

  #end(stream: number): void {
    this.#streams.get(stream)?.end();
    this.#streams.delete(stream);
  }

  #heard(): void {
    this.#unheard = 0;
    this.#listening ??= setInterval(() => this.#listen(), listenMs);
  }

  #listen(): void {
    if (++this.#unheard < patience) return;
    this.#rest();
    this.silent();
  }

  #rest(): void {
    clearInterval(this.#listening);
    this.#listening = undefined;
    for (const stream of this.#streams.keys()) this.#end(stream);
  }

  #tell(message: Tell): void {
    this.port.postMessage(message);
  }
}
