/** The frame times of a page, measured from one animation frame to the next. */
export class Frames {
  /** Records every page of a context from its start. */
  static async of(context) {
    await context.addInitScript(recordFrames);
    return new Frames();
  }

  /** Returns the frame times since the last call, in ms, and their statistics. */
  async take(page) {
    const all = await page.evaluate(() => globalThis.frameTimes.splice(0));
    const sorted = all.toSorted((a, b) => a - b);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    return { all, count: all.length, longest: sorted.at(-1), p50: at(0.5), p99: at(0.99), over50: all.filter((ms) => ms > 50).length };
  }
}

// Runs in the page.
function recordFrames() {
  globalThis.frameTimes = [];
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    globalThis.frameTimes.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
