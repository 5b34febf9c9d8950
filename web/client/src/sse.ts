/** Called by a parser, in the order of the text. */
export interface SSEHandler {
  event(data: string): void;
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
 */
export function parser(handler: SSEHandler): (chunk: string) => void {
  let rest = ''; // the line that has not ended
  let cr = false; // the last chunk ended in \r: a following \n belongs to it
  let data: string | undefined;
  let id: string | undefined;

  function field(line: string): void {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (name === 'data') data = data === undefined ? value : `${data}\n${value}`;
    else if (name === 'id' && !value.includes('\0')) id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) handler.retry(Number(value));
  }

  function dispatch(): void {
    if (data) handler.event(data);
    if (id !== undefined) handler.id(id);
    data = id = undefined;
  }

  return (chunk) => {
    if (cr && chunk[0] === '\n') chunk = chunk.slice(1);
    if (chunk) cr = chunk.endsWith('\r');
    // A long line may span many chunks: it is split once, at its end.
    if (!/[\r\n]/.test(chunk)) {
      rest += chunk;
      return;
    }
    const lines = (rest + chunk).split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    for (const line of lines) line ? field(line) : dispatch();
  };
}
