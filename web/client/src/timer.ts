/** The longest time that a timer can measure, in ms, some 24 days. A timer for a longer one would end at once. */
export const maxTimerMs = 2 ** 31 - 1;

/** Like setTimeout, but a time that is too long to measure is not the shortest. */
export const timer = (run: () => void, ms: number) => setTimeout(run, Math.min(ms, maxTimerMs));
