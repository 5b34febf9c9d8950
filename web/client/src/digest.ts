import type { UpsertEvent } from './protocol.js';
import { mapKey } from './resource.js';
import { type Hash, upperXxh64, xxh64 } from './xxh64.js';

type Named = Pick<UpsertEvent, 'key' | 'key_encoding' | 'encoding'>;

/** Returns the hash of a resource whose value has a text. bytes: those of the text, if they are at hand. */
export function hashOf(text: string, { key, key_encoding, encoding }: Named, bytes?: Uint8Array): Hash {
  const before = `${bytes ? '' : text}\n${encoding ?? ''}\n`;
  const binary = key_encoding && bytesOf(key);
  return binary === undefined || binary === '' ? xxh64(before + key, '', bytes) : xxh64(before, binary, bytes);
}

/** Returns in which of some buckets a key of a map is. */
export function bucketOf(key: string, buckets: number): number {
  const binary = key[0] === encodedPrefix ? bytesOf(key.slice(1)) : undefined;
  const k = binary === undefined ? upperXxh64(key) : upperXxh64('', binary);
  return Math.floor((k * buckets) / 2 ** 32);
}

const encodedPrefix = mapKey({ key: '', key_encoding: 'base64' });

// Undefined if it is not base64 after all.
function bytesOf(base64: string): string | undefined {
  try {
    return atob(base64);
  } catch {
    return undefined;
  }
}

/** Returns how many buckets a state of so many resources has: one for 16 of them, and 16,384 at most. */
export const bucketsOf = (count: number): number => Math.min(Math.max(1, Math.ceil(count / 16)), 16384);

/** Returns a hash as 16 hexadecimal digits. */
export const hexOf = (hash: Hash): string => [3, 2, 1, 0].map((i) => hash.charCodeAt(i).toString(16).padStart(4, '0')).join('');

/** Returns the hash of 16 hexadecimal digits; undefined if it is none. */
export function hashOfHex(hex: unknown): Hash | undefined {
  if (typeof hex !== 'string' || !/^[0-9a-f]{16}$/.test(hex)) return undefined;
  const high = parseInt(hex.slice(0, 8), 16);
  const low = parseInt(hex.slice(8), 16);
  return String.fromCharCode(low & 0xffff, low >>> 16, high & 0xffff, high >>> 16);
}

const word = 2 ** 32;

/** The digest of a state: the number of its resources, and the sum of their hashes. */
export class Digest {
  count = 0;
  /** How many of the resources have no hash: without all of them there is no digest. */
  unknown = 0;
  // The sum: the two words of a hash, and what is carried beyond them.
  low = 0;
  high = 0;
  #carried = 0;

  add(hash: Hash | undefined): void {
    this.#change(hash, 1);
  }

  subtract(hash: Hash | undefined): void {
    this.#change(hash, -1);
  }

  copy(): Digest {
    const copy = Object.assign(new Digest(), this);
    copy.#carried = this.#carried;
    return copy;
  }

  toString(): string {
    const digits = (n: number, length: number) => n.toString(16).padStart(length, '0');
    return `${this.count}-${digits(this.#carried, 16)}${digits(this.high, 8)}${digits(this.low, 8)}`;
  }

  #change(hash: Hash | undefined, sign: number): void {
    this.count += sign;
    if (hash === undefined) {
      this.unknown += sign;
      return;
    }
    this.low += sign * (hash.charCodeAt(0) + 0x10000 * hash.charCodeAt(1));
    this.high += sign * (hash.charCodeAt(2) + 0x10000 * hash.charCodeAt(3)) + Math.floor(this.low / word);
    this.#carried += Math.floor(this.high / word);
    this.low = (this.low + word) % word;
    this.high = (this.high + word) % word;
  }
}
