const units: ReadonlyArray<readonly [ms: number, name: string]> = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

/** Formats a duration in ms with at most two units: `3 s`, `2 min 5 s`, `4 d 1 h`. */
export function duration(ms: number): string {
  const first = units.findIndex(([unit]) => ms >= unit);
  if (first < 0) return '0 s';
  const [unit, name] = units[first]!;
  const whole = `${Math.floor(ms / unit)} ${name}`;
  const next = units[first + 1];
  const rest = next ? Math.floor((ms % unit) / next[0]) : 0;
  return next && rest > 0 ? `${whole} ${rest} ${next[1]}` : whole;
}
