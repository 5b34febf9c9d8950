import { at, base } from '../gateway/base';
import { headersOf, type StreamRequest, urlOf } from './request';

/** Returns the request as a shell command. */
export function curlLine(request: StreamRequest): string {
  const headers = Object.entries(headersOf(request)).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return ['curl -N', ...headers, quoted(absolute(urlOf(request)))].join(' ');
}

// Between single quotes, only another one has a meaning to a shell.
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

// curl treats brackets and braces as patterns.
const absolute = (url: URL) => url.href.replace(/[[\]{}]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/** Returns a program for browsers that reads the stream with an EventSource. */
export function eventSourceExample(request: StreamRequest): string {
  const url = urlOf(request);
  if (request.position) url.searchParams.set('last_event_id', request.position);
  const one = request.watches.length === 1;
  const place = one ? 'resources' : 'watches[watch]';
  const of = one ? '' : 'watch, ';
  const names = request.watches.map((name) => `${text(name)}: new Map()`).join(', ');
  return [
    ...(request.position ? ['// Resumes from a position: only later changes are sent.'] : []),
    one ? 'const resources = new Map();' : `const watches = { ${names} };`,
    `const source = new EventSource(${text(url.href)});`,
    'const on = (type, take) =>',
    '  source.addEventListener(type, ({ data }) => take(JSON.parse(data)));',
    '',
    `on('reset', (${one ? '' : '{ watch }'}) => ${place}.clear());`,
    `on('upsert', ({ ${of}key, value }) => ${place}.set(key, value));`,
    `on('delete', ({ ${of}key }) => ${place}.delete(key));`,
    one
      ? "on('end_of_snapshot', () => console.log('now consistent', resources));"
      : "on('end_of_snapshot', ({ watch }) => console.log('now consistent', watch, watches[watch]));",
  ].join('\n');
}

/** Returns a module that follows the watches with the gateway's client, which reconnects and reports freshness. */
export function clientExample({ watches, prefix }: StreamRequest): string {
  const spec = (name: string) => (prefix ? `{ watch: ${text(name)}, prefix: ${text(prefix)} }` : text(name));
  return [
    `import { watch } from ${text(at('client.js').href)};`,
    '',
    `const tide = watch(${text(base.href)}, { watches: [${watches.map(spec).join(', ')}] });`,
    ...watches.flatMap((name) => [
      '',
      `tide.store(${spec(name)}).subscribe(({ state, since, resources }) => {`,
      `  console.log(${watches.length > 1 ? `${text(name)}, ` : ''}state, 'since', new Date(since), resources.size);`,
      '  for (const [key, { value }] of resources) console.log(key, value);',
      '});',
    ]),
  ].join('\n');
}

// Returns a JavaScript string literal. Every JSON string is one.
const text = (value: string) => (/^[^'\\\p{C}]*$/u.test(value) ? `'${value}'` : JSON.stringify(value));
