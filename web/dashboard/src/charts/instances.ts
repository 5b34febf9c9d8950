// Replicas behind a load balancer; of more, those that have not answered for longest are forgotten.
const most = 8;

/** Something of each replica that has answered, so that figures of several are never mixed. */
export class Instances<T> {
  private readonly byName = new Map<string, T>();
  private last: T;

  constructor(private readonly make: () => T) {
    this.last = make();
  }

  /** Returns what there is of a replica, which has answered now. */
  answered(instance: string): T {
    this.last = this.byName.get(instance) ?? this.make();
    this.byName.delete(instance);
    this.byName.set(instance, this.last);
    const [oldest] = this.byName.keys();
    if (this.byName.size > most) this.byName.delete(oldest!);
    return this.last;
  }

  /** Returns what there is of a replica that has answered; undefined: it has not, or was forgotten. */
  of(instance: string): T | undefined {
    return this.byName.get(instance);
  }

  /** What there is of the replica that answered last. */
  get current(): T {
    return this.last;
  }

  /** The replicas, the one that answered last at the end. */
  get names(): readonly string[] {
    return [...this.byName.keys()];
  }
}
