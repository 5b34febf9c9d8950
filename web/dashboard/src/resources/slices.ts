// So long the page may not answer. A frame takes 16 ms, and has other things to do.
const sliceMs = 8;

/**
 * Drives a generator to its end, with breaks in which the page draws and answers.
 * What is done within the first slice is done when it returns. The function that
 * it returns gives the rest up.
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
