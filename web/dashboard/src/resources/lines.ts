import { type Path, pathText } from './path';

/** One line of a value in a tree. */
export interface Line {
  /** Unique in the tree. */
  readonly id: string;
  /** The id of its parent; undefined at the top. */
  readonly parent: string | undefined;
  readonly level: number; // from 1
  /** undefined: it is not a member, and has no name. */
  readonly name: string | undefined;
  readonly value: unknown;
  /** The number of its members; undefined for none. */
  readonly members: number | undefined;
  /** Whether it is unfolded, to show its members or all of a long text; undefined: it has neither. */
  readonly open: boolean | undefined;
  /** Its position among its siblings, from 1. */
  readonly position: number;
  readonly siblings: number;
  /** The number of hidden members that the line stands for. */
  readonly more: number;
}

/** The lines that the user has folded or unfolded, and the parents whose members are all shown. */
export interface Folds {
  readonly open: ReadonlyMap<string, boolean>;
  readonly whole: ReadonlySet<string>;
}

const pageSize = 100; // members of one parent that are shown at first
const openLevels = 3; // that are unfolded at first
const maxLines = 5000;

/** The number of characters of a folded text. */
export const longText = 300;

/** Returns the visible lines of a value. */
export function linesOf(value: unknown, folds: Folds): Line[] {
  const lines: Line[] = [];
  if (hasMembers(value)) addMembers(lines, value, [], undefined, folds);
  else lines.push({ ...single, id: '$', name: undefined, value, level: 1, parent: undefined, open: openness(value, '$', 1, folds) });
  return lines;
}

const single = { members: undefined, open: undefined, position: 1, siblings: 1, more: 0 };

function addMembers(lines: Line[], value: object, path: Path, parent: string | undefined, folds: Folds): void {
  const names = Object.keys(value);
  const shown = folds.whole.has(parent ?? '') ? names.length : Math.min(names.length, pageSize);
  const siblings = shown < names.length ? shown + 1 : shown;
  for (let i = 0; i < shown && lines.length < maxLines; i++) {
    const name = names[i]!;
    addLine(lines, (value as Record<string, unknown>)[name], [...path, name], { parent, position: i + 1, siblings }, folds);
  }
  const more = names.length - shown;
  if (more > 0)
    lines.push({
      ...single,
      id: `${parent ?? ''}…`,
      parent,
      level: path.length + 1,
      name: undefined,
      value: undefined,
      position: siblings,
      siblings,
      more,
    });
}

function addLine(lines: Line[], value: unknown, path: Path, place: Pick<Line, 'parent' | 'position' | 'siblings'>, folds: Folds): void {
  const id = `$${pathText(path)}`;
  const members = hasMembers(value) ? Object.keys(value).length : undefined;
  const open = openness(value, id, path.length, folds);
  lines.push({ ...place, id, level: path.length, name: path.at(-1)!, value, members, open, more: 0 });
  if (open && hasMembers(value)) addMembers(lines, value, path, id, folds);
}

function openness(value: unknown, id: string, level: number, folds: Folds): boolean | undefined {
  if (typeof value === 'string') return value.length > longText ? (folds.open.get(id) ?? false) : undefined;
  if (!hasMembers(value)) return undefined;
  return folds.open.get(id) ?? (level < openLevels && Object.keys(value).length <= pageSize);
}

function hasMembers(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
