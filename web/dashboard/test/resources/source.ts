import type { Changes, Resource, Store, View } from '@watchtide/client';

/** A store whose changes are made by the test. */
export class Source {
  resources = new Map<string, Resource>();
  view: View = { state: 'connecting', since: 0, reason: '', resources: this.resources, revision: '' };
  readonly #listeners = new Set<(view: View, changes: Changes) => void>();

  get store(): Store {
    return this as unknown as Store; // Store has private members as well
  }

  subscribe(listener: (view: View, changes: Changes) => void) {
    this.#listeners.add(listener);
    listener(this.view, { replaced: false, keys: new Set(this.resources.keys()) });
    return () => void this.#listeners.delete(listener);
  }

  snapshot(revision: number, values: Record<string, unknown>) {
    this.resources = new Map(Object.entries(values).map(([key, value]) => [key, { key, value, revision: String(revision) }]));
    this.#tell({ state: 'in_sync', resources: this.resources, revision: String(revision) }, { replaced: true, keys: new Set() });
  }

  change(revision: number, values: Record<string, unknown>) {
    for (const [key, value] of Object.entries(values)) {
      if (value === undefined) this.resources.delete(key);
      else this.resources.set(key, { key, value, revision: String(revision) });
    }
    this.#tell({ revision: String(revision) }, { replaced: false, keys: new Set(Object.keys(values)) });
  }

  become(state: View['state'], more: Partial<View> = {}) {
    this.#tell({ state, ...more }, { replaced: false, keys: new Set() });
  }

  #tell(view: Partial<View>, changes: Changes) {
    this.view = { ...this.view, ...view };
    for (const listener of this.#listeners) listener(this.view, changes);
  }
}
