const newline = 10;

/** Called by a parser, in the order of the text. */
export interface SSEHandler {
  /** bytes: where those of data, one for each character, begin at a place; if they are at hand. */
  event(data: string, bytes?: Uint8Array, at?: number): void;
  /** The `id` of the preceding event. */
  id(id: string): void;
  retry(ms: number): void;
}

/**
 * Parses Server-Sent Events (WHATWG HTML, 9.2.6) from text that arrives in pieces,
 * cut anywhere. The name of an event is ignored, since our data contains it too.
 *
 * It is our own because it is a quarter of the size of the usual package, which every
 * page would have to load. A test compares the two.
 *
 * bytes: what a piece was decoded from, if that is at hand.
 */
export function parser(handler: SSEHandler): (chunk: string, bytes?: Uint8Array) => void {
  let rest = ''; // the line that has not ended
  let cr = false; // the last chunk ended in \r: a following \n belongs to it
  let data: string | undefined;
  let at = NaN; // where data begins in the bytes of the last chunk, if it has one for each character
  let id: string | undefined;

  function field(line: string, end: number): void {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (name === 'data') {
      at = data === undefined ? end - value.length : NaN;
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (name === 'id' && !value.includes('\0')) id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) handler.retry(Number(value));
  }

  function dispatch(bytes: Uint8Array | undefined): void {
    if (data) at >= 0 ? handler.event(data, bytes, at) : handler.event(data);
    if (id !== undefined) handler.id(id);
    data = id = undefined;
  }

  return (chunk, bytes) => {
    if (cr || chunk.includes('\r')) bytes = undefined;
    if (cr && chunk[0] === '\n') chunk = chunk.slice(1);
    if (chunk) cr = chunk.endsWith('\r');
    // A long line may span many chunks: it is split once, at its end.
    if (!/[\r\n]/.test(chunk)) {
      rest += chunk;
      return;
    }
    const lines = (rest + chunk).split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    at = NaN;
    let from = NaN; // where the line begins in the bytes: the first one may have begun in another piece
    for (const line of lines) {
      const end = bytes ? bytes.indexOf(newline, from) : NaN;
      line ? field(line, end - from === line.length ? end : NaN) : dispatch(bytes);
      from = end + 1;
    }
  };
}
