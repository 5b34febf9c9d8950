// XXH64 with the seed 0, as Yann Collet's specification of xxHash defines it. A number of 64 bits is two of 32: a bigint would
// take ten times as long.

/** A hash: four units of 16 bits, the lowest first. As text it is compared with ===, and takes little memory. */
export type Hash = string;

const [p1h, p1l] = [0x9e3779b1 | 0, 0x85ebca87 | 0];
const [p2h, p2l] = [0xc2b2ae3d | 0, 0x27d4eb4f | 0];
const [p3h, p3l] = [0x165667b1, 0x9e3779f9 | 0];
const [p4h, p4l] = [0x85ebca77 | 0, 0xc2b2ae63 | 0];
const [p5h, p5l] = [0x27d4eb2f, 0x165667c5];

const encoder = new TextEncoder();
const keptBytes = 1 << 16;
const shortText = 128;
const none: Uint8Array = new Uint8Array();

let bytes = new Uint8Array(keptBytes);
let view = new DataView(bytes.buffer);

// The number that is worked on, its lower half first. In variables, a half with more than 31 bits would be an object each time.
const n64 = new Int32Array(2);

/** Returns the hash of bytes, followed by a text in UTF-8, followed by bytes, one in each character of the binary string. */
export function xxh64(text: string, binary = '', before = none): Hash {
  work(text, binary, before);
  const lo = n64[0]!;
  const hi = n64[1]!;
  return String.fromCharCode(lo & 0xffff, lo >>> 16, hi & 0xffff, hi >>> 16);
}

/** Returns the upper 32 bits of the hash of a text in UTF-8, or of bytes. */
export function upperXxh64(text: string, binary = ''): number {
  work(text, binary, none);
  return n64[1]! >>> 0;
}

function work(text: string, binary: string, before: Uint8Array): void {
  const most = before.length + 3 * text.length + binary.length;
  if (most > bytes.length) use(2 * most);
  bytes.set(before);
  let length = append(text, before.length);
  for (let i = 0; i < binary.length; i++) bytes[length++] = binary.charCodeAt(i);
  digest(length);
  if (bytes.length > 1 << 20) use(keptBytes);
}

// Writes a text in UTF-8, and returns where it ends. A call of the encoder takes as long as hashing some hundred bytes.
function append(text: string, from: number): number {
  let i = 0;
  if (text.length <= shortText) for (; i < text.length && text.charCodeAt(i) < 0x80; i++) bytes[from + i] = text.charCodeAt(i);
  return from + (i < text.length ? encoder.encodeInto(text, from ? bytes.subarray(from) : bytes).written : i);
}

function use(length: number): void {
  bytes = new Uint8Array(length);
  view = new DataView(bytes.buffer);
}

const word = (at: number) => view.getInt32(at, true);

const lanes = new Int32Array(8);

function digest(length: number): void {
  let at = length & ~31;
  if (at) mergeLanes(at);
  else {
    n64[1] = p5h;
    n64[0] = p5l;
  }
  add(0, length);
  for (; at + 8 <= length; at += 8) mixIn(word(at + 4), word(at), 27);
  if (at + 4 <= length) {
    xorProduct(word(at), p1h, p1l);
    rotate(23);
    multiply(p2h, p2l);
    add(p3h, p3l);
    at += 4;
  }
  for (; at < length; at++) {
    xorProduct(bytes[at]!, p5h, p5l);
    rotate(11);
    multiply(p1h, p1l);
  }
  mix();
}

function mergeLanes(end: number): void {
  lane(0, end, (p1h + p2h) | 0, (p1l + p2l) | 0); // the sum of the lower halves has no carry
  lane(2, end, p2h, p2l);
  lane(4, end, 0, 0);
  lane(6, end, ~p1h, -p1l | 0); // the lower half is not 0
  n64[0] = n64[1] = 0;
  for (let i = 0; i < 8; i += 2) {
    const h = lanes[i]!;
    const l = lanes[i + 1]!;
    const n = turns[i >> 1]!;
    add((h << n) | (l >>> (32 - n)), (l << n) | (h >>> (32 - n)));
  }
  for (let i = 0; i < 8; i += 2) mixIn(lanes[i]!, lanes[i + 1]!, 0);
}

const turns = [1, 7, 12, 18];

// One of the four lanes, from its first word to the end of the blocks. This is where the time goes.
function lane(i: number, end: number, high: number, low: number): void {
  let h = high;
  let l = low;
  for (let at = 4 * i; at < end; at += 32) {
    const w = word(at);
    const product = Math.imul(w, p2l);
    const sl = (l + product) | 0;
    const carry = sl >>> 0 < product >>> 0 ? 1 : 0;
    const sh = (h + upper(w, p2l) + Math.imul(word(at + 4), p2l) + Math.imul(w, p2h) + carry) | 0;
    const rh = (sh << 31) | (sl >>> 1);
    const rl = (sl << 31) | (sh >>> 1);
    h = (upper(rl, p1l) + Math.imul(rh, p1l) + Math.imul(rl, p1h)) | 0;
    l = Math.imul(rl, p1l);
  }
  lanes[i] = h;
  lanes[i + 1] = l;
}

// The upper half of the product of two numbers of 32 bits.
function upper(a: number, b: number): number {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const x = (Math.imul(a1, b0) + (Math.imul(a0, b0) >>> 16)) | 0; // no sum is more than 32 bits
  const y = (Math.imul(a0, b1) + (x & 0xffff)) | 0;
  return (Math.imul(a1, b1) + (x >>> 16) + (y >>> 16)) | 0;
}

function multiply(high: number, low: number): void {
  const l = n64[0]!;
  n64[1] = upper(l, low) + Math.imul(n64[1]!, low) + Math.imul(l, high);
  n64[0] = Math.imul(l, low);
}

function add(high: number, low: number): void {
  const sum = (n64[0]! + low) | 0;
  n64[1] = n64[1]! + high + (sum >>> 0 < low >>> 0 ? 1 : 0);
  n64[0] = sum;
}

function rotate(n: number): void {
  const h = n64[1]!;
  const l = n64[0]!;
  n64[1] = (h << n) | (l >>> (32 - n));
  n64[0] = (l << n) | (h >>> (32 - n));
}

// Exclusive or with the product of a number of 32 bits.
function xorProduct(word: number, high: number, low: number): void {
  n64[1]! ^= upper(word, low) + Math.imul(word, high);
  n64[0]! ^= Math.imul(word, low);
}

// Mixes in a number of two words; the result turns before it is multiplied.
function mixIn(high: number, low: number, turn: number): void {
  const wl = Math.imul(low, p2l);
  const wh = upper(low, p2l) + Math.imul(high, p2l) + Math.imul(low, p2h);
  const rl = (wl << 31) | (wh >>> 1);
  const rh = (wh << 31) | (wl >>> 1);
  n64[1]! ^= upper(rl, p1l) + Math.imul(rh, p1l) + Math.imul(rl, p1h);
  n64[0]! ^= Math.imul(rl, p1l);
  if (turn) rotate(turn);
  multiply(p1h, p1l);
  add(p4h, p4l);
}

function mix(): void {
  n64[0]! ^= n64[1]! >>> 1;
  multiply(p2h, p2l);
  const h = n64[1]!;
  n64[1]! ^= h >>> 29;
  n64[0]! ^= (n64[0]! >>> 29) | (h << 3);
  multiply(p3h, p3l);
  n64[0]! ^= n64[1]!;
}
