import type { Hash } from './xxh64.js';

// As a class, its instance is the object that it is given.
function itself(object: object) {
  return object;
}

const Itself = itself as unknown as new (object: object) => object;

/**
 * Keeps the hash of a resource in the resource itself, where nothing else sees it: no copy, comparison or JSON has it.
 * A map beside the resources would take twice the time and memory.
 */
export class Hashed extends Itself {
  readonly #hash: Hash;

  /** The object must not have a hash yet. */
  constructor(resource: object, hash: Hash) {
    super(resource);
    this.#hash = hash;
  }

  static hashOf(resource: object): Hash | undefined {
    return #hash in resource ? resource.#hash : undefined;
  }
}
