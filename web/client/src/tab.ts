import { dialect, type HubMessage, type Port, type TabMessage } from './port.js';
import { type StreamHub, TabStream } from './tab_stream.js';
import { uniqueId } from './unique_id.js';

const checkMs = 40_000;

// A tab that sent nothing for this many checks is gone or frozen: not every port
// reports that. Even a hidden tab, whose timers are late, sends something every
// minute. A tab that thaws finds its streams silent, and opens new ones.
const maxMissed = 4;

/** What a tab needs of the hub that serves it. */
export interface TabHub {
  of(tag: string | undefined): StreamHub;
  hurry(): void;
  check(): void;
}

/** A tab as the hub sees it: its port and its streams, until it falls silent. */
export class Tab {
  readonly #streams = new Map<number, TabStream>();
  #checking: ReturnType<typeof setInterval> | undefined;
  #missed = 0;

  /** onSilent is called when the tab is gone, or has sent nothing for minutes: it may still come back. onBack is called when it does. */
  constructor(
    private readonly hub: TabHub,
    private readonly port: Port,
    private readonly onSilent: () => void,
    private readonly onBack: (tab: Tab) => void,
  ) {
    port.addEventListener('message', this.#receive);
    port.addEventListener('close', () => this.#gone());
    port.start?.();
    this.#alive();
    this.#post({ hub: uniqueId(), dialect });
  }

  close(): void {
    this.port.removeEventListener('message', this.#receive);
    this.#endStreams();
  }

  readonly #receive = ({ data }: MessageEvent<TabMessage>): void => {
    const { stream } = data;
    this.#alive();
    if ('query' in data) return this.#begin(data);
    if ('move' in data) return this.#post({ stream, moved: this.#streams.get(stream)?.move(data.move) ?? 0 });
    if (data.say === 'more') return this.#streams.get(stream)?.acknowledged();
    if (data.say === 'end') return this.#end(stream);
    if (data.say === 'hurry') return this.hub.hurry();
    this.hub.check();
    if (this.#streams.has(stream)) this.#answer(stream);
  };

  #begin({ stream, ...begin }: Extract<TabMessage, { query: string }>): void {
    const begun = new TabStream(this.hub.of(begin.tag), `${stream}`, begin, (message) => this.#post({ stream, ...message }));
    this.#streams.set(stream, begun);
  }

  #answer(stream: number): void {
    this.#post({ stream });
    this.#streams.get(stream)?.pinged();
  }

  #end(stream: number): void {
    this.#streams.get(stream)?.end();
    this.#streams.delete(stream);
  }

  #alive(): void {
    this.#missed = 0;
    if (this.#checking) return;
    this.#checking = setInterval(() => this.#check(), checkMs);
    this.onBack(this);
  }

  #check(): void {
    if (++this.#missed < maxMissed) return;
    this.#endStreams();
    this.onSilent();
  }

  #gone(): void {
    this.close();
    this.onSilent();
  }

  #endStreams(): void {
    clearInterval(this.#checking);
    this.#checking = undefined;
    for (const stream of this.#streams.keys()) this.#end(stream);
  }

  #post(message: HubMessage): void {
    this.port.postMessage(message);
  }
}
