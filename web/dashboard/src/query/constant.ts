import type { Wanted } from './query';

/** A constant that is not a text. */
export type Constant = number | bigint | boolean | null;

const decimal = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const integer = /^-?\d+$/;
const words: Readonly<Record<string, Constant>> = { true: true, false: false, null: null };

/** Returns what a text stands for besides itself: a number, true, false or null; undefined: nothing. */
export function constantOf({ text, how, quoted }: Wanted): Constant | undefined {
  if (quoted || how !== 'equal') return undefined;
  if (Object.hasOwn(words, text)) return words[text];
  return decimal.test(text) ? number(text) : undefined;
}

// The same as the gateway's: an integer has all its digits if it has at most 64 bits.
function number(text: string): Constant | undefined {
  if (integer.test(text)) return sized(BigInt(text));
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Returns an integer as the gateway has it: as a float64 if it has more than 64 bits. */
export const sized = (value: bigint): number | bigint => (value >= -(2n ** 63n) && value < 2n ** 64n ? value : Number(value));
