// The start of an integer that may be too large: rare, and quick to rule out.
const long = /[:,[]\s*-?\d{16}/;
const token = /"(?:[^"\\]|\\.)*"|-?[1-9]\d{15,}(?![\d.eE])/g;
const mark = '\udfffinteger ';
const marked = new RegExp(`^${mark}-?\\d+$`);

/** Parses JSON like JSON.parse, except that integers too large for a number become a bigint, with all their digits. */
export function parse(json: string): unknown {
  if (!long.test(json)) return JSON.parse(json);
  const text = json.replace(token, (token) => (token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${mark}${token}"`));
  return JSON.parse(text, (_, value: unknown) =>
    typeof value === 'string' && marked.test(value) ? BigInt(value.slice(mark.length)) : value,
  );
}
