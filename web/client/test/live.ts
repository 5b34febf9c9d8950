import type { CountsView, LiveCounts } from '../src/counts.js';
import type { LiveWindow, WindowView } from '../src/window.js';

/** A view that a test sets, and how many follow it. */
class Shown<D> {
  readonly #listeners = new Set<(view: D) => void>();

  constructor(public view: D) {}

  get listeners(): number {
    return this.#listeners.size;
  }

  subscribe(run: (view: D) => void): () => void {
    const listener = (view: D) => run(view);
    run(this.view);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  show(view: D): void {
    this.view = view;
    for (const run of this.#listeners) run(view);
  }
}

const fresh = { state: 'in_sync', since: 0, reason: '', revision: '1' } as const;

/** A window with rows of these keys. */
export class ShownWindow extends Shown<WindowView<number>> implements LiveWindow<number> {
  constructor(total: number, ...keys: string[]) {
    super(pageOf(total, keys));
  }

  set(total: number, ...keys: string[]): void {
    this.show(pageOf(total, keys));
  }

  move(): void {}

  close(): void {}
}

const pageOf = (total: number, keys: string[]): WindowView<number> => ({
  ...fresh,
  rows: keys.map((key) => ({ key, revision: '1', value: 1 })),
  total,
  before: 0,
  next: '',
  moving: false,
});

/** Counts with these groups. */
export class ShownCounts extends Shown<CountsView> implements LiveCounts {
  constructor(groups: Record<string, number>) {
    super(countsOf(groups));
  }

  set(groups: Record<string, number>): void {
    this.show(countsOf(groups));
  }

  override subscribe(run: (view: CountsView, changes: { replaced: boolean; keys: Set<string> }) => void): () => void {
    return super.subscribe((view) => run(view, { replaced: false, keys: new Set(view.groups.keys()) }));
  }

  close(): void {}
}

const countsOf = (groups: Record<string, number>): CountsView => ({
  ...fresh,
  groups: new Map(Object.entries(groups).map(([key, count]) => [key, { key, values: [key], count }])),
  total: Object.values(groups).reduce((total, count) => total + count, 0),
});

/** What the tests of the adapters show of a window, and of counts. */
export const textOf = ({ rows, total }: WindowView<number>) => `${rows.map(({ key }) => key)} of ${total}`;
export const countsText = ({ groups, total }: CountsView) =>
  `${[...groups.values()].map(({ key, count }) => `${key}=${count}`)} of ${total}`;
