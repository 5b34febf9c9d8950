import { RefusedError, type Resource } from '@watchtide/client';
import type { LiveWindow, Move, WindowView } from '@watchtide/client/window';

type Options = Move & { readonly watch?: string };

/** A gateway's window of all rows that a test sets. It answers a move when the test says so. */
export class WindowSource implements LiveWindow {
  /** In the order of the window. */
  all: readonly Resource[] = [];
  readonly moves: Move[] = [];
  view: WindowView = { state: 'connecting', since: 0, reason: '', revision: '', rows: [], total: 0, before: 0, next: '', moving: false };
  readonly #listeners = new Set<(view: WindowView) => void>();
  #closed = false;

  constructor(public options: Options) {}

  subscribe(run: (view: WindowView) => void): () => void {
    if (this.#closed) throw new Error('it was closed');
    this.#listeners.add(run);
    run(this.view);
    return () => void this.#listeners.delete(run);
  }

  move(to: Move): void {
    const next = { ...this.options, ...to };
    if (JSON.stringify(next) === JSON.stringify(this.options)) return;
    this.options = next;
    this.moves.push(to);
    if (this.view.revision !== '') this.#tell({ moving: true });
  }

  /** The rows of where it was moved are there. */
  answer(all = this.all, total = all.length): void {
    this.all = all;
    const { offset = 0, limit = 1 } = this.options;
    const before = Math.min(offset, all.length);
    this.#tell({ state: 'in_sync', revision: '5', rows: all.slice(before, before + limit), before, total, moving: false });
  }

  refuse(status: number): void {
    this.#tell({ state: 'closed', error: new RefusedError(status, undefined, undefined, 'refused') });
  }

  close(): void {
    this.#closed = true;
    this.#tell({ state: 'closed' });
  }

  #tell(change: Partial<WindowView>): void {
    this.view = { ...this.view, ...change };
    for (const run of this.#listeners) run(this.view);
  }
}

export const resources = (count: number, prefix = 'k'): Resource[] =>
  Array.from({ length: count }, (_, i) => ({ key: `${prefix}${String(i).padStart(6, '0')}`, revision: '1', value: { n: i } }));
