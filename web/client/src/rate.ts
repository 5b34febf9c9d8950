import type { RateControl } from './rate_control.js';

export type { RateChooser, RateControl } from './rate_control.js';

// The rates of a page that is shown, each about half of the one before.
const rates = [undefined, '10/s', '5/s', '2/s', '1/s', '30/m', '12/m'];
const hiddenRate = '12/m';

// The time between two rates. It is also the time after which a tab counts as hidden.
const intervalMs = 5_000;

// Frames are late if more than a tenth of those in this time came later than lateMs after the one before, and very late if more
// than half of them did: of so many at least.
const windowMs = 2_000;
const lateMs = 50;
const minFrames = 10;

// The time of good frames before the next higher rate. It doubles when frames are late again soon after a higher rate.
const goodMs = 5_000;
const maxGoodMs = 60_000;
const soonMs = 10_000;

/**
 * Chooses the rate from what the page can take: `watch(url, { maxRate: autoRate })`. There is no bound at first. If frames are
 * late while changes arrive, it takes half of the rate, or a quarter if most of them are, down to one change each five seconds, and the
 * next higher one when frames have been in time for some seconds. A hidden tab gets changes every five seconds. Where there is no page, as in Node, there is no bound.
 */
export const autoRate = (chosen: () => void): RateControl => new AutoRate(chosen);

class AutoRate implements RateControl {
  rate: string | undefined;
  #level = 0; // in rates
  #chosenAt = -Infinity;
  #hiddenAt = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #frames = new Frames();
  #goodMs = goodMs; // the time that is needed
  #higherAt = -Infinity;

  constructor(private readonly chosen: () => void) {
    globalThis.document?.addEventListener?.('visibilitychange', this.#visibility);
    if (globalThis.document?.hidden) this.rate = hiddenRate;
  }

  changed(): void {
    if (globalThis.document && !document.hidden) this.#frames.measure(() => this.#judge());
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#frames.stop();
    globalThis.document?.removeEventListener?.('visibilitychange', this.#visibility);
  }

  readonly #visibility = (): void => {
    if (document.hidden) this.#hiddenAt = performance.now();
    this.#frames.stop();
    this.#choose();
  };

  #choose(): void {
    clearTimeout(this.#timer);
    const rate = document.hidden ? hiddenRate : rates[this.#level];
    if (rate === this.rate) return;
    const since = document.hidden ? Math.max(this.#chosenAt, this.#hiddenAt) : this.#chosenAt;
    const wait = since + intervalMs - performance.now();
    if (wait > 0) return void (this.#timer = setTimeout(() => this.#choose(), wait));
    this.#chosenAt = performance.now();
    this.#frames.forget();
    this.rate = rate;
    this.chosen();
  }

  // Called after each frame.
  #judge(): void {
    const now = performance.now();
    if (now - this.#chosenAt < intervalMs) return;
    const { late, veryLate, good } = this.#frames;
    if (late && this.#level < rates.length - 1) {
      this.#goodMs = now - this.#higherAt < soonMs ? Math.min(2 * this.#goodMs, maxGoodMs) : goodMs;
      this.#level = Math.min(this.#level + (veryLate ? 2 : 1), rates.length - 1);
    } else if (good >= this.#goodMs && this.#level > 0) {
      this.#higherAt = now;
      this.#level--;
    }
    this.#choose();
  }
}

/** The times between frames, measured while there is a reason to. */
class Frames {
  /** How long frames have been in time, of what was measured, in ms. */
  good = 0;
  #gaps: Array<{ at: number; late: boolean }> = [];
  #request: number | undefined;
  #since = 0; // the oldest gap began
  #last = 0; // the last frame
  #until = 0;

  /** Measures for some time from now on, and calls measured after each frame. */
  measure(measured: () => void): void {
    const now = performance.now();
    this.#until = now + windowMs;
    if (this.#request !== undefined) return;
    this.#gaps = [];
    this.#since = this.#last = now;
    const frame = () => {
      this.#add();
      this.#request = this.#last > this.#until ? undefined : requestAnimationFrame(frame);
      measured();
    };
    this.#request = requestAnimationFrame(frame);
  }

  /** What was measured says nothing any more. */
  forget(): void {
    this.#gaps = [];
    this.#since = this.#last;
    this.good = 0;
  }

  stop(): void {
    if (this.#request !== undefined) cancelAnimationFrame(this.#request);
    this.#request = undefined;
    this.forget();
  }

  get late(): boolean {
    return this.#lateOf(10);
  }

  get veryLate(): boolean {
    return this.#lateOf(2);
  }

  // More than one of so many frames was late.
  #lateOf(frames: number): boolean {
    return this.#enough && this.#gaps.filter(({ late }) => late).length * frames > this.#gaps.length;
  }

  get #enough(): boolean {
    return this.#last - this.#since >= windowMs && this.#gaps.length >= minFrames;
  }

  #add(): void {
    const at = performance.now();
    const gap = at - this.#last;
    this.#last = at;
    this.#gaps.push({ at, late: gap > lateMs });
    while (this.#gaps.length > minFrames && this.#gaps[0]!.at < at - windowMs) this.#gaps.shift();
    if (this.late) this.good = 0;
    else if (this.#enough && gap <= lateMs) this.good += gap;
  }
}
