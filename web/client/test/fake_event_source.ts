/** A browser's EventSource, as far as needed: an event without an id repeats the last one. */
export class FakeEventSource extends EventTarget {
  static all: FakeEventSource[] = [];
  onerror: (() => void) | undefined;
  closed = false;
  #id = '';

  constructor(
    private readonly address: string,
    readonly init: EventSourceInit,
  ) {
    super();
    FakeEventSource.all.push(this);
  }

  get url(): string {
    return this.address;
  }

  static get last(): FakeEventSource {
    return FakeEventSource.all.at(-1)!;
  }

  tell(event: { type: string } & Record<string, unknown>, id?: string) {
    this.#id = id ?? this.#id;
    this.dispatchEvent(new MessageEvent(event.type, { data: JSON.stringify(event), lastEventId: this.#id }));
  }

  close() {
    this.closed = true;
  }
}
