// Where a number begins that may be too large: rare, and quick to rule out.
const long = /[:,[]\s*-?\d{16}/;
const token = /"(?:[^"\\]|\\.)*"|-?[1-9]\d{15,}(?![\d.eE])/g;
const mark = '\udfffinteger ';
const marked = new RegExp(`^${mark}-?\\d+$`);

/** Reads JSON as JSON.parse does, but for integers that a number cannot hold: they become a bigint, with all their digits. */
export function parse(json: string): unknown {
  if (!long.test(json)) return JSON.parse(json);
  const text = json.replace(token, (token) => (token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${mark}${token}"`));
  return JSON.parse(text, (_, value: unknown) => (typeof value === 'string' && marked.test(value) ? BigInt(value.slice(mark.length)) : value));
}
