const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** 12,345 */
export const count = (n: number): string => whole.format(n);

/** Formats a rate per second: with one decimal below 10, and none above. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0';
  return perSecond < 10 ? perSecond.toFixed(1) : whole.format(perSecond);
}

const steps = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** 1.5 MiB */
export function bytes(n: number): string {
  let step = 0;
  for (; n >= 1024 && step < steps.length - 1; step++) n /= 1024;
  return `${step === 0 ? n : n.toFixed(1)} ${steps[step]}`;
}
