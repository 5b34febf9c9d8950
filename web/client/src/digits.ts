// The start of an integer that may be too large: rare, and quick to rule out.
const long = /(?:^|[:,[])\s*-?\d{16}/;
const token = /(?:"(?:[^"\\]|\\[^])*"|-?\d[\d.eE+-]*)(\s*:)?/g;
const integer = /^-?[1-9]\d{15,}$/;
const text = /"(?:[^"\\]|\\[^])*"(:)?/g;

// A large integer is a string with this mark for as long as the JSON is read or written. A string
// of the value that begins like it gets another surrogate before it meanwhile.
const surrogate = '\udfff';
const mark = `${surrogate}integer `;
const marked = new RegExp(`^${mark}-?\\d+$`);

/**
 * Parses JSON like `JSON.parse`, except that an integer beyond 2⁵³ becomes a bigint, with all its digits. Numbers
 * with a fraction or an exponent stay numbers. Throws a SyntaxError for what is not JSON.
 */
export function parse(json: string): unknown {
  if (!long.test(json)) return JSON.parse(json);
  return JSON.parse(json.replace(token, markLarge), (_, value: unknown) => (typeof value === 'string' ? unmarked(value) : value));
}

function markLarge(token: string, colon: string | undefined): string {
  if (colon) return token; // the name of a field, or a mistake
  if (!token.startsWith('"')) return integer.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token;
  if (!/\\udfff|\udfff/i.test(token)) return token; // the usual case, kept fast
  try {
    return JSON.stringify(escaped(JSON.parse(token) as string));
  } catch {
    return token; // JSON.parse says what is wrong with all of it
  }
}

function unmarked(value: string): string | bigint {
  if (!value.startsWith(surrogate)) return value;
  return marked.test(value) ? BigInt(value.slice(mark.length)) : value.slice(1);
}

const escaped = (value: string) => (value.startsWith(surrogate) ? surrogate + value : value);

/** Writes a value as JSON like `JSON.stringify`, except that a bigint becomes an integer. */
export function stringify(value: unknown): string {
  const json = JSON.stringify(value, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${mark}${value}`;
    return typeof value === 'string' ? escaped(value) : value;
  });
  return json?.replace(text, (token, colon: string | undefined) => (colon ? token : unmarkLarge(token)));
}

// JSON.stringify writes a surrogate without its other half as an escape.
function unmarkLarge(token: string): string {
  if (!token.startsWith('"\\udfff')) return token;
  const [, digits] = /^"\\udfffinteger (-?\d+)"$/.exec(token) ?? [];
  return digits ?? `"${token.slice('"\\udfff'.length)}`;
}
