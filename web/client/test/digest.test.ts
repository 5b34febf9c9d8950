import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bucketOf, bucketsOf, Digest, hashOf, hashOfHex, hexOf } from '../src/digest.js';
import { upperXxh64, xxh64 } from '../src/xxh64.js';

const hex = (k: number) => k.toString(16).padStart(8, '0');

// As docs/protocol.md has them.
const states = [
  [{ key: 'a' }, '1', '68cd357d0b93fb08', 'd24ec4f1'],
  [{ key: 'shopping/milk' }, '{"text":"two litres"}', '633a42d209907abb', '70e8c709'],
  [{ key: 'b', encoding: 'base64' }, '"aGk="', '82b4160a5f09160c', '78452aa1'],
  [{ key: '/wA=', key_encoding: 'base64' }, 'null', '67fa0b57bccfee4c', '232a32cf'],
  [{ key: '日本' }, '"語"', '574cede479135154', '80c2e40b'],
] as const;

describe('the vectors of the protocol', () => {
  test.each(states)('%j', (named, value, hash, k) => {
    expect(hexOf(hashOf(value, named))).toBe(hash);
    expect(hexOf(hashOf('', named, Buffer.from(value)))).toBe(hash);
    const mapKey = 'key_encoding' in named ? `\udfff${named.key}` : named.key;
    expect(bucketOf(mapKey, 2 ** 20)).toBe(parseInt(k, 16) >>> 12);
  });

  test('of the digest', () => {
    const digest = new Digest();
    expect(`${digest}`).toBe('0-00000000000000000000000000000000');
    for (const [, , hash] of states) digest.add(hashOfHex(hash));
    expect(`${digest}`).toBe('5-00000000000000020e028795aa10cb6f');
    for (const [, , hash] of states) digest.subtract(hashOfHex(hash));
    expect(`${digest}`).toBe('0-00000000000000000000000000000000');
  });
});

test.each([
  ['', 'ef46db3751d8e999'],
  ['a', 'd24ec4f1a98c6e5b'],
  ['abc', '44bc2cf5ad770999'],
  ['Nobody inspects the spammish repetition', 'fbcea83c8a378bf1'],
])('the hash of %j is %s', (text, hash) => {
  expect(hexOf(xxh64(text))).toBe(hash);
  expect(hexOf(xxh64('', text))).toBe(hash);
  expect(hex(upperXxh64(text))).toBe(hash.slice(0, 8));
});

test('any text has the hash that a plain implementation computes', () => {
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.string({ unit: 'grapheme', maxLength: 60 }));
  fc.assert(
    fc.property(text, fc.uint8Array({ maxLength: 100 }), (text, more) => {
      const bytes = Buffer.concat([Buffer.from(text), more]);
      const hash = plain(bytes).toString(16).padStart(16, '0');
      const binary = String.fromCharCode(...more);
      expect(hexOf(xxh64(text, binary))).toBe(hash);
      expect(hexOf(xxh64('', binary, Buffer.from(text)))).toBe(hash);
    }),
    { numRuns: 3_000 },
  );
});

test('a text that is longer than the buffer', () => {
  for (const length of [1, 65_535, 65_536, 400_001, 3_000_000, 40]) {
    const text = 'xü'.repeat(length);
    expect(hexOf(xxh64(text))).toBe(plain(Buffer.from(text)).toString(16).padStart(16, '0'));
  }
});

test('a digest is the sum of what is there, in any order', () => {
  const hash = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(fc.array(hash), fc.array(hash), (kept, gone) => {
      const digest = new Digest();
      const of = (n: bigint) => hashOfHex(n.toString(16).padStart(16, '0'));
      for (const n of [...gone, ...kept]) digest.add(of(n));
      const before = digest.copy();
      for (const n of gone) digest.subtract(of(n));
      const sum = kept.reduce((a, b) => a + b, 0n);
      expect(`${digest}`).toBe(`${kept.length}-${sum.toString(16).padStart(32, '0')}`);
      for (const n of gone) digest.add(of(n));
      expect(`${digest}`).toBe(`${before}`);
    }),
  );
});

test('text that is no hash', () => {
  for (const text of ['', 'x', 'EF46DB3751D8E999', '0'.repeat(17), 7, null, undefined]) expect(hashOfHex(text)).toBeUndefined();
  expect(hexOf(hashOfHex('0123456789abcdef')!)).toBe('0123456789abcdef');
});

test('the number of buckets', () => {
  expect([0, 1, 16, 17, 100_000, 262_144, 262_145, 1e9].map(bucketsOf)).toEqual([1, 1, 1, 2, 6250, 16384, 16384, 16384]);
});

const mask = 2n ** 64n - 1n;
const [p1, p2, p3, p4, p5] = [0x9e3779b185ebca87n, 0xc2b2ae3d27d4eb4fn, 0x165667b19e3779f9n, 0x85ebca77c2b2ae63n, 0x27d4eb2f165667c5n];
const rotl = (x: bigint, n: bigint) => ((x << n) | (x >> (64n - n))) & mask;
const round = (sum: bigint, word: bigint) => (rotl((sum + word * p2) & mask, 31n) * p1) & mask;

/** XXH64 with bigints. */
function plain(bytes: Buffer): bigint {
  let h = p5;
  let at = 0;
  if (bytes.length >= 32) {
    const lanes = [(p1 + p2) & mask, p2, 0n, -p1 & mask];
    for (; at + 32 <= bytes.length; at += 32) for (let i = 0; i < 4; i++) lanes[i] = round(lanes[i]!, bytes.readBigUInt64LE(at + 8 * i));
    h = [1n, 7n, 12n, 18n].reduce((sum, n, i) => (sum + rotl(lanes[i]!, n)) & mask, 0n);
    for (const lane of lanes) h = ((h ^ round(0n, lane)) * p1 + p4) & mask;
  }
  h = (h + BigInt(bytes.length)) & mask;
  for (; at + 8 <= bytes.length; at += 8) h = (rotl(h ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * p1 + p4) & mask;
  for (; at + 4 <= bytes.length; at += 4) h = (rotl(h ^ ((BigInt(bytes.readUInt32LE(at)) * p1) & mask), 23n) * p2 + p3) & mask;
  for (; at < bytes.length; at++) h = (rotl(h ^ ((BigInt(bytes[at]!) * p5) & mask), 11n) * p1) & mask;
  h = ((h ^ (h >> 33n)) * p2) & mask;
  h = ((h ^ (h >> 29n)) * p3) & mask;
  return h ^ (h >> 32n);
}
