import { base } from '../gateway/base';
import { headersOf, urlOf, type Ask } from './request';

/** The same connection as a line for a shell. */
export function curlLine(ask: Ask): string {
  const headers = Object.entries(headersOf(ask)).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return ['curl -N', ...headers, quoted(absolute(urlOf(ask)))].join(' ');
}

// Nothing but another quote means anything to a shell between these quotes.
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

// curl takes brackets and braces for patterns.
const absolute = (url: URL) => url.href.replace(/[[\]{}]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** The same stream in a browser that has nothing but its own EventSource. */
export function eventSourceExample(ask: Ask): string {
  const url = urlOf(ask);
  if (ask.position) url.searchParams.set('last_event_id', ask.position);
  const one = ask.watches.length === 1;
  const place = one ? 'resources' : 'watches[watch]';
  const of = one ? '' : 'watch, ';
  const names = ask.watches.map((name) => `${text(name)}: new Map()`).join(', ');
  return [
    ...(ask.position ? ['// Resumes from a position: only later changes are sent.'] : []),
    one ? 'const resources = new Map();' : `const watches = { ${names} };`,
    `const source = new EventSource(${text(url.href)});`,
    'const on = (type, take) =>',
    '  source.addEventListener(type, ({ data }) => take(JSON.parse(data)));',
    '',
    `on('reset', (${one ? '' : '{ watch }'}) => ${place}.clear());`,
    `on('upsert', ({ ${of}key, value }) => ${place}.set(key, value));`,
    `on('delete', ({ ${of}key }) => ${place}.delete(key));`,
    one ? "on('end_of_snapshot', () => console.log('now consistent', resources));"
      : "on('end_of_snapshot', ({ watch }) => console.log('now consistent', watch, watches[watch]));",
  ].join('\n');
}

/** The same watches with the client, which comes back by itself and says how fresh they are. */
export function clientExample({ watches, prefix }: Ask): string {
  const specs = watches.map((name) => prefix ? `{ watch: ${text(name)}, prefix: ${text(prefix)} }` : text(name));
  return [
    "import { watch } from '@watchtide/client';",
    '',
    `const tide = watch(${text(base.href)}, { watches: [${specs.join(', ')}] });`,
    ...watches.flatMap((name) => [
      '',
      `tide.store(${text(name)}).subscribe(({ state, since, resources }) => {`,
      `  console.log(${watches.length > 1 ? `${text(name)}, ` : ''}state, 'since', new Date(since), resources.size);`,
      '  for (const [key, { value }] of resources) console.log(key, value);',
      '});',
    ]),
  ].join('\n');
}

// As a string of JavaScript. Every string of JSON is one.
const text = (value: string) => /^[^'\\\p{C}]*$/u.test(value) ? `'${value}'` : JSON.stringify(value);
