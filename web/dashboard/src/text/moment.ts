/** Formats a time in ms as of Date.now, without the date if that is today. */
export function moment(at: number, now = Date.now()): string {
  const then = new Date(at);
  return then.toDateString() === new Date(now).toDateString() ? then.toLocaleTimeString() : then.toLocaleString();
}
