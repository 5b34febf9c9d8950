import { Derived, type DerivedView, freshnessOf } from './derived.js';
import { attempt, type Readable } from './listeners.js';
import { ReadOnly } from './read_only.js';
import type { Changes } from './replica.js';
import type { Resource } from './resource.js';
import type { View } from './view.js';

/** Returns the group of a resource, or several; undefined for none. It must depend on the resource alone. */
export type GroupBy<V, G> = (resource: Resource<V>) => G | readonly G[] | undefined;

export interface GroupsView<V, G> extends DerivedView {
  /** The resources of each group, by key. A group is another map whenever something in it has changed. No group is empty. */
  readonly groups: ReadonlyMap<G, ReadonlyMap<string, Resource<V>>>;
}

/** An index of a store: its resources by a field, or by anything else that follows from them. */
export interface GroupIndex<V, G> {
  readonly view: GroupsView<V, G>;
  /** Calls run at once, and after each change, with the groups that have changed, until the returned function is called. */
  subscribe(run: (view: GroupsView<V, G>, changed: ReadonlySet<G>) => void): () => void;
  /** Ends it: its view is `closed`, and subscribe throws. */
  close(): void;
}

/**
 * Returns the resources of a store by group: `groupBy(pods, ({ value }) => value.node)`. After a change it costs time for
 * the changed keys. A resource for which `by` throws is in no group.
 */
export const groupBy = <V, G extends string | number | boolean | bigint | null>(store: Readable<V>, by: GroupBy<V, G>): GroupIndex<V, G> =>
  new LiveGroups(store, by);

class LiveGroups<V, G> extends Derived<V, GroupsView<V, G>, ReadonlySet<G>> implements GroupIndex<V, G> {
  readonly #members = new Map<G, Map<string, Resource<V>>>();
  readonly #shown = new Map<G, ReadonlyMap<string, Resource<V>>>();
  readonly #groupsOf = new Map<string, readonly G[]>();
  #groups!: GroupsView<V, G>['groups'];

  constructor(
    store: Readable<V>,
    private readonly by: GroupBy<V, G>,
  ) {
    super();
    this.follow(store);
  }

  protected update({ resources }: View<V>, { replaced, keys }: Changes): ReadonlySet<G> | undefined {
    const changed = new Set<G>();
    for (const key of replaced ? new Set([...this.#groupsOf.keys(), ...resources.keys()]) : keys)
      this.#set(key, resources.get(key), changed);
    for (const group of changed) this.#show(group);
    return changed.size > 0 ? changed : undefined;
  }

  protected derive(view: View<V>, changed: boolean): GroupsView<V, G> {
    if (changed) this.#groups = new ReadOnly(this.#shown);
    return { ...freshnessOf(view), groups: this.#groups };
  }

  protected nothing(): ReadonlySet<G> {
    return new Set();
  }

  protected everything(): ReadonlySet<G> {
    return new Set(this.#shown.keys());
  }

  #set(key: string, resource: Resource<V> | undefined, changed: Set<G>): void {
    for (const group of this.#groupsOf.get(key) ?? []) {
      this.#members.get(group)?.delete(key);
      changed.add(group);
    }
    const groups = resource ? this.#groupsFor(resource) : [];
    for (const group of groups) {
      const members = this.#members.get(group) ?? new Map<string, Resource<V>>();
      this.#members.set(group, members.set(key, resource!));
      changed.add(group);
    }
    if (groups.length > 0) this.#groupsOf.set(key, groups);
    else this.#groupsOf.delete(key);
  }

  #groupsFor(resource: Resource<V>): readonly G[] {
    let groups: readonly G[] = [];
    attempt(() => {
      const group = this.by(resource);
      groups = group === undefined ? [] : Array.isArray(group) ? group : [group as G];
    });
    return groups;
  }

  #show(group: G): void {
    const members = this.#members.get(group)!;
    if (members.size > 0) this.#shown.set(group, new ReadOnly(members));
    else {
      this.#members.delete(group);
      this.#shown.delete(group);
    }
  }
}
