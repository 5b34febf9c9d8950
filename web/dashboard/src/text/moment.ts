/** A time in ms as of Date.now as a person says it: without the date, if it is of the same day as now. */
export function moment(at: number, now = Date.now()): string {
  const then = new Date(at);
  return then.toDateString() === new Date(now).toDateString() ? then.toLocaleTimeString() : then.toLocaleString();
}
