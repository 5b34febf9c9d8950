/** Reports whether two JSON values are the same, in whatever order their fields are. */
export function equal(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return false;
  const [left, right] = [Object.entries(a), b as Record<string, unknown>];
  if (Array.isArray(a) !== Array.isArray(b) || left.length !== Object.keys(b).length) return false;
  return left.every(([name, value]) => Object.hasOwn(right, name) && equal(value, right[name]));
}
