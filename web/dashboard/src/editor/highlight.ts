/** A piece of a text in one colour; kind is empty for what has none. */
export interface Span {
  readonly text: string;
  readonly kind: '' | 'name' | 'string' | 'number' | 'word';
}

// A larger text is not coloured: it would be slow to type in.
export const maxHighlighted = 100_000;

const json = /("(?:[^"\\\n]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;
const yaml =
  /^(\s*(?:- )*)((?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s#:"'[{][^:\n]*?))(:)(?=\s|$)|("(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?)|(?<=[\s,[]|^)(-?\d[\d.eE+-]*)(?=[\s,\]}]|$)|(?<=[\s,[]|^)(true|false|null)(?=[\s,\]}]|$)/gm;

/** Splits a text in JSON or YAML, also while it is wrong, into pieces that together are the text. */
export function highlight(text: string, language: 'json' | 'yaml'): Span[] {
  if (text.length > maxHighlighted) return [{ text, kind: '' }];
  const spans: Span[] = [];
  let end = 0;
  const add = (text: string, kind: Span['kind']) => void (text !== '' && spans.push({ text, kind }));
  for (const match of text.matchAll(language === 'json' ? json : yaml)) {
    add(text.slice(end, match.index), '');
    end = match.index + match[0].length;
    if (language === 'json') addJSON(match, add);
    else addYAML(match, add);
  }
  add(text.slice(end), '');
  return spans;
}

type Add = (text: string, kind: Span['kind']) => void;

function addJSON([all, string, colon, number]: RegExpMatchArray, add: Add): void {
  if (string === undefined) return add(all, number === undefined ? 'word' : 'number');
  add(string, colon === undefined ? 'string' : 'name');
  add(colon ?? '', '');
}

function addYAML([all, before, name, colon, string, number]: RegExpMatchArray, add: Add): void {
  if (name === undefined) return add(all, string !== undefined ? 'string' : number !== undefined ? 'number' : 'word');
  add(before ?? '', '');
  add(name, 'name');
  add(colon ?? '', '');
}
