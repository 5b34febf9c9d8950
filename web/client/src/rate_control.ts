/** Chooses the rate of a connection. */
export interface RateControl {
  /** How often changes are to be sent at most, such as `2/s` or `10/m`; undefined: whenever there are some. */
  readonly rate: string | undefined;
  /** Called when changes have arrived on a stream that is up to date. */
  changed?(): void;
  /** Called when the connection is closed. */
  close?(): void;
}

/** Begins to choose the rate of a connection. chosen is to be called when the rate is another one. */
export type RateChooser = (chosen: () => void) => RateControl;

/** Throws unless it is a rate. A gateway that refuses the parameter is then one that does not know it. */
export function checkRate(rate: string): void {
  if (!/^[1-9]\d{0,3}\/[sm]$/.test(rate)) throw new TypeError(`maxRate is ${rate}: want a rate, such as 2/s or 10/m`);
}

/** Returns the time between changes of a rate, in ms; 0 without one. */
export function intervalOf(rate: string | null): number {
  const [count, unit] = rate?.split('/') ?? [];
  return count ? { s: 1_000, m: 60_000 }[unit as 's' | 'm'] / Number(count) : 0;
}
