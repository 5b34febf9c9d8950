// The time for which the page may be blocked: half of a frame.
const sliceMs = 8;

/**
 * Runs a generator to its end, with breaks in which the page can draw and respond. The
 * first slice runs before it returns. The returned function cancels the rest.
 */
export function inSlices(steps: Iterator<void, void>, done: () => void): () => void {
  const breaks = new MessageChannel(); // a timer of 0 ms takes 4
  const end = () => breaks.port1.close();
  const slice = () => {
    const until = performance.now() + sliceMs;
    while (performance.now() < until) {
      if (!steps.next().done) continue;
      end();
      return done();
    }
    breaks.port2.postMessage(null);
  };
  breaks.port1.onmessage = slice;
  slice();
  return end;
}
