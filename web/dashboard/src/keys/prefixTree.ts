/** The keys that begin with one prefix. */
export interface Branch {
  /** What its keys have after the prefix of the branch above; with the separator. */
  readonly name: string;
  readonly prefix: string;
  readonly count: number;
  readonly hasBranches: boolean;
}

/** The separators of keys; the first is the most usual. */
export const separators = ['/', ':', '.'] as const;
export type Separator = (typeof separators)[number];

// Deeper parts are not told apart, which bounds the memory that long keys take.
const maxDepth = 6;

/**
 * Counts keys by their prefixes. Each key that is added or removed costs as many steps as
 * it has parts. The caller adds no key twice, and removes only what was added.
 */
export class PrefixTree {
  readonly root = new Node('', '');

  constructor(readonly separator: Separator) {}

  /** The branch of all keys. */
  get all(): Branch {
    return this.root;
  }

  add(key: string): void {
    this.#count(key, 1);
  }

  remove(key: string): void {
    this.#count(key, -1);
  }

  /** Returns the branches below a branch, in order of their names. */
  below(branch: Branch): readonly Branch[] {
    return (branch as Node).sorted();
  }

  #count(key: string, by: 1 | -1): void {
    let node = this.root;
    node.count += by;
    let from = 0;
    for (let depth = 0; depth < maxDepth; depth++) {
      const end = key.indexOf(this.separator, from) + 1;
      if (end === 0 || end === key.length) return; // what is left is the name of one resource
      node = node.branch(key.slice(from, end), by);
      from = end;
    }
  }
}

class Node implements Branch {
  count = 0;
  #children: Map<string, Node> | undefined;
  #sorted: readonly Node[] | undefined;

  constructor(
    readonly name: string,
    readonly prefix: string,
  ) {}

  get hasBranches(): boolean {
    return this.#children !== undefined && this.#children.size > 0;
  }

  /** Counts a key in a child, which exists for as long as it has keys. */
  branch(name: string, by: 1 | -1): Node {
    this.#children ??= new Map();
    let child = this.#children.get(name);
    if (!child) {
      child = new Node(name, this.prefix + name);
      this.#children.set(name, child);
      this.#sorted = undefined;
    }
    child.count += by;
    if (child.count === 0) {
      this.#children.delete(name);
      this.#sorted = undefined;
    }
    return child;
  }

  sorted(): readonly Node[] {
    return (this.#sorted ??= [...(this.#children?.values() ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1)));
  }
}

/** Returns the separator that most keys of a sample have; undefined if hardly any has one. */
export function separatorOf(sample: readonly string[]): Separator | undefined {
  const having = (separator: string) => sample.filter((key) => key.slice(0, -1).includes(separator)).length;
  const counts = separators.map((separator) => ({ separator, count: having(separator) }));
  const [best] = counts.sort((a, b) => b.count - a.count);
  return best!.count * 5 > sample.length ? best!.separator : undefined;
}
