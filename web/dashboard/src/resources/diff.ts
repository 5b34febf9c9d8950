import { isObject, type Path } from './path';

/** One field that is different. undefined: it was, or is, not there. */
export interface Difference {
  readonly path: Path;
  readonly before: unknown;
  readonly after: unknown;
}

/** The fields in which two values differ, the deepest there are, and at most so many. */
export function diff(before: unknown, after: unknown, most = 100): Difference[] {
  const found: Difference[] = [];
  compare(before, after, []);
  return found;

  function compare(before: unknown, after: unknown, path: Path): void {
    if (before === after || found.length >= most) return;
    if (!comparable(before, after)) return void found.push({ path, before, after });
    for (const name of namesOf(before, after)) compare(member(before as Inner, name), member(after as Inner, name), [...path, name]);
  }
}

type Inner = Readonly<Record<string, unknown>>;

const member = (inner: Inner, name: string) => (Object.hasOwn(inner, name) ? inner[name] : undefined);

// Lists are compared member by member, as objects are.
function comparable(before: unknown, after: unknown): boolean {
  return isObject(before) && isObject(after) || Array.isArray(before) && Array.isArray(after);
}

function namesOf(before: unknown, after: unknown): Set<string> {
  return new Set([...Object.keys(before as Inner), ...Object.keys(after as Inner)]);
}
