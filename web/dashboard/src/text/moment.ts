// Clocks have 24 hours everywhere; only the date is that of the locale.
const hourCycle = 'h23';
const time = new Intl.DateTimeFormat(undefined, { hourCycle, hour: '2-digit', minute: '2-digit', second: '2-digit' });
const full = new Intl.DateTimeFormat(undefined, { hourCycle, dateStyle: 'medium', timeStyle: 'medium' });

/** Formats a time in ms as of Date.now, without the date if that is today: `14:03:07`. */
export function moment(at: number, now = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  return isToday ? time.format(at) : fullMoment(at);
}

/** Formats a time in ms as of Date.now with its date. */
export const fullMoment = (at: number): string => (Number.isFinite(at) ? full.format(at) : '');
