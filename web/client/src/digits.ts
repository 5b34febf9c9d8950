// The start of an integer that may be too large: rare, and quick to rule out.
const long = /(?:^|[:,[])\s*-?\d{16}/;
const integer = /^-?[1-9]\d{15,}$/;

// A large integer is a string with this mark for as long as the JSON is written. A string
// of the value that begins like it gets another surrogate before it meanwhile.
const surrogate = '\udfff';
const mark = `${surrogate}integer `;
// Where a string begins with the surrogate, which JSON.stringify writes as an escape, and all of a large integer.
// A quote inside a string has a backslash before it, and one at its end has none after it.
const markedText = /(^|[[{,:])"\\udfff(?:integer (-?\d+)"(?!:))?/g;

/**
 * Parses JSON like `JSON.parse`, except that an integer beyond 2⁵³ becomes a bigint, with all its digits. Numbers
 * with a fraction or an exponent stay numbers. Throws a SyntaxError for what is not JSON.
 */
export function parse(json: string): unknown {
  const value: unknown = JSON.parse(json);
  return long.test(json) ? read(json) : value;
}

// Reads what is known to be JSON. Neither its depth nor its length is limited by the stack.
function read(json: string): unknown {
  const all: unknown[] = [];
  const outer: unknown[] = [];
  let into: unknown = all;
  let name: string | undefined;
  const put = (value: unknown): void => {
    if (Array.isArray(into)) into.push(value);
    else Object.defineProperty(into, name!, { value, writable: true, enumerable: true, configurable: true }); // it may be __proto__
    name = undefined;
  };
  const tokens = /["[\]{}]|[^\s,:"[\]{}]+/g;
  for (let match = tokens.exec(json); match; match = tokens.exec(json)) {
    const [token] = match;
    if (token === '"') {
      tokens.lastIndex = endOf(json, tokens.lastIndex) + 1;
      const text = JSON.parse(json.slice(match.index, tokens.lastIndex)) as string;
      if (Array.isArray(into) || name !== undefined) put(text);
      else name = text;
    } else if (token === '[' || token === '{') {
      const value = token === '[' ? [] : {};
      put(value);
      outer.push(into);
      into = value;
    } else if (token === ']' || token === '}') into = outer.pop();
    else put(integer.test(token) && !Number.isSafeInteger(Number(token)) ? BigInt(token) : JSON.parse(token));
  }
  return all[0];
}

// Returns where the quote is that ends a string, of which `from` is inside.
function endOf(json: string, from: number): number {
  for (let end = json.indexOf('"', from); ; end = json.indexOf('"', end + 1)) {
    let escapes = 0;
    while (json[end - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return end;
  }
}

/** Writes a value as JSON like `JSON.stringify`, except that a bigint becomes an integer. */
export function stringify(value: unknown): string {
  const json = JSON.stringify(value, (_, value: unknown) => {
    if (typeof value === 'bigint') return `${mark}${value}`;
    return typeof value === 'string' && value.startsWith(surrogate) ? surrogate + value : value;
  });
  return json?.replace(markedText, (token: string, before: string, digits: string | undefined, at: number) => {
    if (digits) return before + digits;
    return json[endOf(json, at + token.length) + 1] === ':' ? token : `${before}"`; // the name of a field has no mark
  });
}
