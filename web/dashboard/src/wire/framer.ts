import type { StreamRequest } from './request';

const lineEnd = 10;

/**
 * Cuts the bytes of a stream into frames: SSE after an empty line, NDJSON after each
 * line. The frames together are exactly the bytes of the wire.
 */
export class Framer {
  readonly #rest: Uint8Array[] = [];
  #last = 0; // the last byte of the previous chunk

  constructor(private readonly format: StreamRequest['format']) {}

  /** Adds a chunk, and returns the frames that are now complete. */
  push(chunk: Uint8Array): Uint8Array[] {
    const frames: Uint8Array[] = [];
    let start = 0;
    for (let i = chunk.indexOf(lineEnd); i >= 0; i = chunk.indexOf(lineEnd, i + 1)) {
      const before = i > 0 ? chunk[i - 1] : this.#last;
      if (this.format === 'sse' && before !== lineEnd) continue;
      frames.push(this.#complete(chunk.subarray(start, i + 1)));
      start = i + 1;
    }
    if (start < chunk.length) this.#rest.push(chunk.slice(start));
    this.#last = chunk.at(-1) ?? this.#last;
    return frames;
  }

  /** Returns the incomplete frame at the end of the connection, if any. */
  end(): Uint8Array[] {
    return this.#rest.length === 0 ? [] : [this.#complete(new Uint8Array())];
  }

  #complete(end: Uint8Array): Uint8Array {
    if (this.#rest.length === 0) return end;
    const parts = [...this.#rest.splice(0), end];
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}
