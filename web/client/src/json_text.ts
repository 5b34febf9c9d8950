// Finds parts of a text that is known to be JSON, without reading all of it again.

/**
 * Returns the text of the value of an upsert, exactly as it stands in the text of the event; undefined if it has none.
 * last is the name of the last member of the event. Where a name stands twice, which RFC 8259 advises against, it may be another text.
 */
export function valueText(json: string, last: string): string | undefined {
  const start = startOfValue(json, last);
  if (start) return json.slice(start, -1);
  const [from, to] = memberOf(json, 'value') ?? [];
  return from === undefined ? undefined : json.slice(from, to);
}

/** Returns where the value of an upsert begins that ends before the last brace, as a gateway writes it; 0 if it stands otherwise. */
export function startOfValue(json: string, last: string): number {
  head.lastIndex = 0;
  return last === 'value' && json.endsWith('}') && head.test(json) ? head.lastIndex : 0;
}

// Members that are short texts, and the name of the value.
const head = /\{(?:"\w+":"[^"\\]*",)+"value":(?=[^\s])/y;

/** Returns the texts of the elements of a list that is a member of an object. */
export function elementsOf(json: string, name: string): string[] {
  const texts: string[] = [];
  const [from, to] = memberOf(json, name) ?? [];
  if (from === undefined || json[from] !== '[') return texts;
  for (let at = skip(json, from + 1); at < to! - 1; ) {
    const end = endOfValue(json, at);
    texts.push(json.slice(at, end));
    at = skip(json, end);
  }
  return texts;
}

// Returns where the value of a member of an object begins and ends. Of several with the name, the last one counts.
function memberOf(json: string, name: string): [from: number, to: number] | undefined {
  let found: [number, number] | undefined;
  let at = skip(json, 0);
  if (json[at++] !== '{') return undefined;
  for (at = skip(json, at); json[at] === '"'; at = skip(json, at)) {
    const key = endOfValue(json, at);
    const from = skip(json, key);
    const to = endOfValue(json, from);
    if (JSON.parse(json.slice(at, key)) === name) found = [from, to];
    at = to;
  }
  return found;
}

// Skips white space, and what stands between members and elements.
function skip(json: string, at: number): number {
  while (between.has(json.charCodeAt(at))) at++;
  return at;
}

const between = new Set([...' \t\r\n,:'].map((c) => c.charCodeAt(0)));

// Returns where the value ends that begins at a place.
function endOfValue(json: string, from: number): number {
  for (let at = from, depth = 0; at < json.length; at++) {
    switch (json[at]) {
      case '"':
        at = endOfText(json, at);
        break;
      case '[':
      case '{':
        depth++;
        continue;
      case ']':
      case '}':
        if (depth === 0) return at; // of what the value is in
        depth--;
        break;
      default:
        if (depth === 0 && between.has(json.charCodeAt(at))) return at;
        continue;
    }
    if (depth === 0) return at + 1;
  }
  return json.length;
}

// Returns where the quote is that ends a text.
function endOfText(json: string, from: number): number {
  for (let at = from; ; ) {
    at = json.indexOf('"', at + 1);
    if (at < 0) return json.length;
    let escapes = 0;
    while (json[at - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return at;
  }
}
