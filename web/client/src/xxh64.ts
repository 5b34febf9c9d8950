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

let bytes = new Uint8Array(keptBytes);
let words = new Int32Array(bytes.buffer);

/** Whether words of 32 bits are read as they have to be. */
export const littleEndian = new Uint8Array(new Int32Array([1]).buffer)[0] === 1;

// The number that is worked on, its lower half first. In variables, a half with more than 31 bits would be an object each time.
const n64 = new Int32Array(2);

/** Returns the hash of a text in UTF-8, followed by bytes, one in each character of the binary string. */
export function xxh64(text: string, binary = ''): Hash {
  work(text, binary);
  const lo = n64[0]!;
  const hi = n64[1]!;
  return String.fromCharCode(lo & 0xffff, lo >>> 16, hi & 0xffff, hi >>> 16);
}

/** Returns the upper 32 bits of the hash of a text in UTF-8, or of bytes. */
export function upperXxh64(text: string, binary = ''): number {
  work(text, binary);
  return n64[1]! >>> 0;
}

function work(text: string, binary: string): void {
  const most = 3 * text.length + binary.length;
  if (most > bytes.length) use(2 * most);
  let length = encoder.encodeInto(text, bytes).written;
  for (let i = 0; i < binary.length; i++) bytes[length++] = binary.charCodeAt(i);
  digest(length);
  if (bytes.length > 1 << 20) use(keptBytes);
}

function use(length: number): void {
  bytes = new Uint8Array((length + 3) & ~3);
  words = new Int32Array(bytes.buffer);
}

const lanes = new Int32Array(8);

function digest(length: number): void {
  const blocks = length >>> 5;
  if (blocks > 0) mergeLanes(blocks << 3);
  else {
    n64[1] = p5h;
    n64[0] = p5l;
  }
  add(0, length);
  let at = blocks << 3;
  for (; 4 * at + 8 <= length; at += 2) {
    xorRound(words[at + 1]!, words[at]!);
    rotate(27);
    multiply(p1h, p1l);
    add(p4h, p4l);
  }
  let byte = 4 * at;
  if (byte + 4 <= length) {
    xorProduct(words[at]!, p1h, p1l);
    rotate(23);
    multiply(p2h, p2l);
    add(p3h, p3l);
    byte += 4;
  }
  for (; byte < length; byte++) {
    xorProduct(bytes[byte]!, p5h, p5l);
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
  n64.fill(0);
  for (let i = 0; i < 8; i += 2) {
    const h = lanes[i]!;
    const l = lanes[i + 1]!;
    const n = turns[i >> 1]!;
    add((h << n) | (l >>> (32 - n)), (l << n) | (h >>> (32 - n)));
  }
  for (let i = 0; i < 8; i += 2) {
    xorRound(lanes[i]!, lanes[i + 1]!);
    multiply(p1h, p1l);
    add(p4h, p4l);
  }
}

const turns = [1, 7, 12, 18];

// One of the four lanes, from its first word to the end of the blocks. This is where the time goes.
function lane(first: number, end: number, high: number, low: number): void {
  let h = high;
  let l = low;
  for (let i = first; i < end; i += 8) {
    const wl = words[i]!;
    const wh = words[i + 1]!;
    const sum = (l >>> 0) + (Math.imul(wl, p2l) >>> 0);
    const sh = (h + upper(wl, p2l) + Math.imul(wh, p2l) + Math.imul(wl, p2h) + (sum > 0xffffffff ? 1 : 0)) | 0;
    const sl = sum | 0;
    const rh = (sh << 31) | (sl >>> 1);
    const rl = (sl << 31) | (sh >>> 1);
    h = (upper(rl, p1l) + Math.imul(rh, p1l) + Math.imul(rl, p1h)) | 0;
    l = Math.imul(rl, p1l);
  }
  lanes[first] = h;
  lanes[first + 1] = l;
}

// The upper half of the product of two numbers of 32 bits.
function upper(a: number, b: number): number {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const x = Math.imul(a1, b0);
  const y = Math.imul(a0, b1);
  const middle = (Math.imul(a0, b0) >>> 16) + (x & 0xffff) + (y & 0xffff);
  return (Math.imul(a1, b1) + (x >>> 16) + (y >>> 16) + (middle >>> 16)) | 0;
}

function multiply(high: number, low: number): void {
  const l = n64[0]!;
  n64[1] = upper(l, low) + Math.imul(n64[1]!, low) + Math.imul(l, high);
  n64[0] = Math.imul(l, low);
}

function add(high: number, low: number): void {
  const sum = (n64[0]! >>> 0) + (low >>> 0);
  n64[1] = n64[1]! + high + (sum > 0xffffffff ? 1 : 0);
  n64[0] = sum | 0;
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

// Exclusive or with what a round makes of a word.
function xorRound(high: number, low: number): void {
  const h = n64[1]!;
  const l = n64[0]!;
  n64[1] = high;
  n64[0] = low;
  multiply(p2h, p2l);
  rotate(31);
  multiply(p1h, p1l);
  n64[1]! ^= h;
  n64[0]! ^= l;
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
