/** A line of the difference of two texts. */
export interface DiffLine {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

// Beyond so many steps the whole middle counts as changed.
const maxEdits = 1000;

/** Returns the difference of two texts, line by line: as few added and removed lines as possible. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split('\n'), after.split('\n')];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = changed(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [...a.slice(0, start).map(same), ...middle, ...(end > 0 ? a.slice(-end).map(same) : [])];
}

const same = (text: string): DiffLine => ({ kind: 'same', text });
const added = (text: string): DiffLine => ({ kind: 'added', text });
const removed = (text: string): DiffLine => ({ kind: 'removed', text });

// Myers: for each number of edits, how far each diagonal reaches.
function changed(a: readonly string[], b: readonly string[]): DiffLine[] {
  const reached: Array<Map<number, number>> = [];
  let furthest = new Map([[1, 0]]);
  for (let edits = 0; edits <= Math.min(maxEdits, a.length + b.length); edits++) {
    reached.push(new Map(furthest));
    const next = new Map(furthest);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = diagonal === -edits || (diagonal !== edits && (next.get(diagonal - 1) ?? -1) < (next.get(diagonal + 1) ?? -1));
      let x = down ? (next.get(diagonal + 1) ?? 0) : (next.get(diagonal - 1) ?? 0) + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      next.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return traced(a, b, reached);
    }
    furthest = next;
  }
  return [...a.map(removed), ...b.map(added)];
}

function traced(a: readonly string[], b: readonly string[], reached: ReadonlyArray<ReadonlyMap<number, number>>): DiffLine[] {
  const lines: DiffLine[] = [];
  let [x, y] = [a.length, b.length];
  for (let edits = reached.length - 1; edits >= 0; edits--) {
    const before = reached[edits]!;
    const diagonal = x - y;
    const down = diagonal === -edits || (diagonal !== edits && (before.get(diagonal - 1) ?? -1) < (before.get(diagonal + 1) ?? -1));
    const from = down ? diagonal + 1 : diagonal - 1;
    const fromX = edits === 0 ? 0 : (before.get(from) ?? 0);
    const fromY = edits === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      lines.push(same(a[--x]!));
      y--;
    }
    if (edits === 0) break;
    lines.push(down ? added(b[--y]!) : removed(a[--x]!));
  }
  return lines.reverse();
}
