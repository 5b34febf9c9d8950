// Characters that show nothing themselves, but change the direction or the lines of what is
// beside them: controls, bidirectional formatting, and separators of lines.
const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const each = new RegExp(hidden, 'g');

/** Which characters become escapes: all of the hidden ones in a key, those but for tabs and line ends in a text. */
export type Kind = 'key' | 'text';

const escaped: Readonly<Record<Kind, RegExp>> = { key: hidden, text: new RegExp(`(?![\\t\\n\\r])${hidden.source}`) };
const around: Readonly<Record<Kind, RegExp>> = { key: new RegExp(`(${escaped.key.source})`), text: new RegExp(`(${escaped.text.source})`) };

const escape = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Returns text with an escape in place of each hidden character, as JSON has it: `a\u202eb`. */
export const visible = (text: string): string => text.replace(each, escape);

/** A piece of a text. char: it is the escape of this character. */
export interface Piece {
  readonly text: string;
  readonly char?: string;
}

/** Reports whether a text has no character that becomes an escape. */
export const isPlain = (text: string, kind: Kind): boolean => !escaped[kind].test(text);

/** Returns the places of the characters of a text that become escapes. */
export const hiddenIn = (text: string): number[] => Array.from(text.matchAll(new RegExp(escaped.text, 'g')), ({ index }) => index);

/** Splits a text at its hidden characters, which become escapes. */
export function pieces(text: string, kind: Kind = 'key'): Piece[] {
  return text
    .split(around[kind])
    .filter((part) => part !== '')
    .map((part) => (escaped[kind].test(part) ? { text: escape(part), char: part } : { text: part }));
}
