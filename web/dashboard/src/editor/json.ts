// JSON as text: finds errors and formats it, without converting numbers, which would
// lose digits.

/** The place where a text is not JSON, and what was expected there. */
export interface Fault {
  readonly at: number;
  /** Both from 1; the column counts characters. */
  readonly line: number;
  readonly column: number;
  readonly reason: string;
}

export interface Token {
  readonly at: number;
  readonly text: string;
}

// The tokens of RFC 8259, each with the whitespace before it.
const pattern =
  /[\t\n\r ]*([{}[\],:]|"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;

/** Returns the first fault of a text, or undefined if it is JSON. */
export function findFault(text: string): Fault | undefined {
  try {
    JSON.parse(text); // much faster, but browsers report the position differently
    return undefined;
  } catch {
    return faultOf(text);
  }
}

/** Formats JSON with one member per line. Tokens are not changed. */
export function format(text: string): string {
  const tokens = tokensOf(text);
  const out: string[] = [];
  let indent = '\n';
  tokens.forEach(({ text: token }, i) => {
    const before = tokens[i - 1]?.text ?? '';
    if (closes(token)) indent = indent.slice(0, -2);
    if (opens(before) ? !closes(token) : closes(token)) out.push(indent);
    out.push(token);
    if (opens(token)) indent += '  ';
    if (token === ',') out.push(indent);
    if (token === ':') out.push(' ');
  });
  return out.join('');
}

/** Returns a member of a JSON object verbatim, or undefined if there is none. */
export function member(text: string, name: string): string | undefined {
  const tokens = tokensOf(text);
  let depth = 0;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (depth === 1 && token.text === ':' && JSON.parse(tokens[i - 1]!.text) === name) return valueAt(text, tokens, i + 1);
    if (opens(token.text)) depth++;
    if (closes(token.text)) depth--;
  }
  return undefined;
}

function valueAt(text: string, tokens: readonly Token[], first: number): string {
  let depth = 0;
  let last = first;
  for (; last < tokens.length; last++) {
    if (opens(tokens[last]!.text)) depth++;
    if (closes(tokens[last]!.text)) depth--;
    if (depth === 0) break;
  }
  const end = tokens[last]!;
  return text.slice(tokens[first]!.at, end.at + end.text.length);
}

const opens = (token: string) => token === '{' || token === '[';
const closes = (token: string) => token === '}' || token === ']';

/** Returns the tokens of a text up to the first that is none. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    tokens.push({ at: pattern.lastIndex - match[1]!.length, text: match[1]! });
  }
  return tokens;
}

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | ', or }' | ', or ]' | 'end';

function faultOf(text: string): Fault {
  const tokens = tokensOf(text);
  const open: string[] = [];
  let expected: Expected = 'value';
  for (const token of tokens) {
    const next = step(expected, token.text, open);
    if (!next) return fault(text, token.at, expected);
    expected = next;
  }
  const last = tokens.at(-1);
  const rest = last ? last.at + last.text.length : 0;
  return fault(text, rest + text.slice(rest).search(/[^\t\n\r ]|$/), expected);
}

// Returns what is expected after a token, or undefined if the token is not allowed.
function step(expected: Expected, token: string, open: string[]): Expected | undefined {
  if (token === '}' || token === ']') {
    if (!expected.endsWith(`or ${token}`)) return undefined;
    open.pop();
    return afterValue(open);
  }
  if (expected === ':') return token === ':' ? 'value' : undefined;
  if (expected.startsWith(',')) return token !== ',' ? undefined : open.at(-1) === '{' ? 'key' : 'value';
  if (expected.startsWith('key')) return token.startsWith('"') ? ':' : undefined;
  if (expected === 'end' || token === ':' || token === ',') return undefined;
  if (!opens(token)) return afterValue(open);
  open.push(token);
  return token === '{' ? 'key or }' : 'value or ]';
}

const afterValue = (open: readonly string[]): Expected => (open.length === 0 ? 'end' : open.at(-1) === '{' ? ', or }' : ', or ]');

const wants: Record<Expected, string> = {
  value: 'a value',
  'value or ]': 'a value or ]',
  key: 'a name in double quotes',
  'key or }': 'a name in double quotes, or }',
  ':': 'a colon',
  ', or }': 'a comma or }',
  ', or ]': 'a comma or ]',
  end: 'the end of the text',
};

function fault(text: string, at: number, expected: Expected): Fault {
  return { ...placeOf(text, at), reason: `expected ${wants[expected]}, found ${found(text, at)}` };
}

/** Returns the line and the column of an index. */
export function placeOf(text: string, at: number): Pick<Fault, 'at' | 'line' | 'column'> {
  const lines = text.slice(0, at).split('\n');
  return { at, line: lines.length, column: lines.at(-1)!.length + 1 };
}

function found(text: string, at: number): string {
  const [word = ''] = /^(?:\w+|[^]?)/u.exec(text.slice(at, at + 20)) ?? [];
  if (word === '') return 'the end of the text';
  if (word === '"') return 'a string that is not closed, or has a character that must be escaped';
  return `“${word}”`;
}
