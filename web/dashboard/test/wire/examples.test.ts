// @vitest-environment happy-dom
/// <reference types="node" />
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { clientExample, curlLine, eventSourceExample } from '../../src/wire/examples';
import { optionsOf, parseRequest, type StreamRequest } from '../../src/wire/request';

const plain: StreamRequest = { watches: ['notes'], prefix: '', format: 'sse', position: '' };
const hard: StreamRequest = {
  watches: ["no'tes $HOME", 'b'],
  prefix: 'a\'/ $(x) "?#[1]{2}\\',
  format: 'ndjson',
  position: "it's $POS@1-2/3,`b`",
};

// The arguments that curl receives from a shell.
const argumentsOf = (line: string) =>
  execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${line}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1);

describe('the curl line', () => {
  it('is short without options', () => {
    expect(curlLine(plain)).toBe("curl -N 'http://localhost:3000/v1/watches/notes/events'");
  });
  it('survives the shell, whatever it contains', () => {
    const [n, h1, accept, h2, position, href, ...more] = argumentsOf(curlLine(hard));
    expect([n, h1, accept, h2, position]).toEqual(['-N', '-H', 'Accept: application/x-ndjson', '-H', `Last-Event-ID: ${hard.position}`]);
    expect(more).toEqual([]);
    const url = new URL(href!);
    expect(url.searchParams.getAll('watch')).toEqual(hard.watches);
    expect(hard.watches.map((name) => url.searchParams.get(`prefix.${name}`))).toEqual([hard.prefix, hard.prefix]);
    expect(href).not.toMatch(/[[\]{}]/);
  });
});

describe('the example with EventSource', () => {
  it.each([plain, hard, { ...plain, position: 'notes@a-1' }])('runs, and holds what the stream says: %j', (request) => {
    const source = new FakeSource();
    const logged: unknown[][] = [];
    const scope = { EventSource: source.open, console: { log: (...all: unknown[]) => logged.push(all) } };
    new Function(...Object.keys(scope), eventSourceExample(request))(...Object.values(scope));

    const [watch] = request.watches;
    source.tell({ type: 'reset', watch });
    source.tell({ type: 'upsert', watch, key: 'a', value: 1 });
    source.tell({ type: 'upsert', watch, key: 'b', value: 2 });
    source.tell({ type: 'delete', watch, key: 'a' });
    source.tell({ type: 'end_of_snapshot', watch });
    expect(logged[0]?.at(-1)).toEqual(new Map([['b', 2]]));
    source.tell({ type: 'reset', watch });
    expect(logged[0]?.at(-1)).toEqual(new Map());
    expect(source.url?.searchParams.get('last_event_id') ?? '').toBe(request.position);
  });
});

describe('the example with the client', () => {
  it.each([plain, hard])('asks for the same: %j', (request) => {
    const asked: unknown[] = [];
    const stores: unknown[] = [];
    const store = (spec: unknown) => (
      stores.push(spec),
      { subscribe: (f: (view: object) => void) => f({ state: 'in_sync', since: 0, resources: new Map([['k', { value: 1 }]]) }) }
    );
    const scope = {
      watch: (...all: unknown[]) => (asked.push(...all), { store }),
      console: { log: (...all: unknown[]) => asked.push(all[0]) },
    };
    const [imported = '', ...program] = clientExample(request).split('\n');
    expect(imported).toBe("import { watch } from 'http://localhost:3000/client.js';");
    new Function(...Object.keys(scope), program.join('\n'))(...Object.values(scope));
    const specs = request.watches.map((watch) => (request.prefix ? { watch, prefix: request.prefix } : watch));
    expect(asked).toEqual([
      'http://localhost:3000/',
      { watches: specs },
      ...request.watches.flatMap((name) => [request.watches.length > 1 ? name : 'in_sync', 'k']),
    ]);
    expect(stores).toEqual(specs);
  });
});

it('is parsed from the URL of the page as it was formatted', () => {
  for (const request of [plain, { ...hard, watches: ['a', 'b', 'c'] }]) {
    const options = Object.entries(optionsOf(request)).filter((entry): entry is [string, string] => entry[1] !== undefined);
    expect(parseRequest(request.watches[0]!, new URLSearchParams(options))).toEqual(request);
  }
});

class FakeSource {
  url: URL | undefined;
  readonly #listeners = new Map<string, (event: { data: string }) => void>();

  readonly open = (() => {
    const source = this;
    return class {
      constructor(url: string) {
        source.url = new URL(url);
      }
      addEventListener(type: string, listener: (event: { data: string }) => void) {
        source.#listeners.set(type, listener);
      }
    };
  })();

  tell(event: { type: string; [field: string]: unknown }): void {
    this.#listeners.get(event.type)!({ data: JSON.stringify(event) });
  }
}
