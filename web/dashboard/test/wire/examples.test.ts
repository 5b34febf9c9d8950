/// <reference types="node" />
import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { clientExample, curlLine, eventSourceExample } from '../../src/wire/examples';
import { askOf, optionsOf, type Ask } from '../../src/wire/request';

const plain: Ask = { watches: ['notes'], prefix: '', format: 'sse', position: '' };
const hard: Ask = { watches: ["no'tes $HOME", 'b'], prefix: "a'/ $(x) \"?#[1]{2}\\", format: 'ndjson', position: "it's $POS@1-2/3,`b`" };

// What a shell makes of the line: the arguments that curl gets.
const argumentsOf = (line: string) =>
  execFileSync('sh', ['-c', `curl() { printf '%s\\0' "$@"; }\n${line}`], { encoding: 'utf8' }).split('\0').slice(0, -1);

describe('the curl line', () => {
  it('is short where nothing is special', () => {
    expect(curlLine(plain)).toBe("curl -N 'http://localhost:3000/v1/watches/notes/events'");
  });
  it('survives the shell, whatever is in it', () => {
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
  it.each([plain, hard, { ...plain, position: 'notes@a-1' }])('runs, and holds what the stream says: %j', (ask) => {
    const source = new FakeSource();
    const logged: unknown[][] = [];
    const scope = { EventSource: source.open, console: { log: (...all: unknown[]) => logged.push(all) } };
    new Function(...Object.keys(scope), eventSourceExample(ask))(...Object.values(scope));

    const [watch] = ask.watches;
    source.tell({ type: 'reset', watch });
    source.tell({ type: 'upsert', watch, key: 'a', value: 1 });
    source.tell({ type: 'upsert', watch, key: 'b', value: 2 });
    source.tell({ type: 'delete', watch, key: 'a' });
    source.tell({ type: 'end_of_snapshot', watch });
    expect(logged[0]?.at(-1)).toEqual(new Map([['b', 2]]));
    source.tell({ type: 'reset', watch });
    expect(logged[0]?.at(-1)).toEqual(new Map());
    expect(source.url?.searchParams.get('last_event_id') ?? '').toBe(ask.position);
  });
});

describe('the example with the client', () => {
  it.each([plain, hard])('asks for the same: %j', (ask) => {
    const asked: unknown[] = [];
    const subscribe = (name: string) => ({ subscribe: (f: (view: object) => void) => f({ state: name, since: 0, resources: new Map([['k', { value: 1 }]]) }) });
    const scope = { watch: (...all: unknown[]) => (asked.push(...all), { store: subscribe }), console: { log: (...all: unknown[]) => asked.push(all[0]) } };
    new Function(...Object.keys(scope), clientExample(ask).replace(/^import .*$/m, ''))(...Object.values(scope));
    const specs = ask.watches.map((watch) => ask.prefix ? { watch, prefix: ask.prefix } : watch);
    expect(asked).toEqual(['http://localhost:3000/', { watches: specs }, ...ask.watches.flatMap((name) => [name, 'k'])]);
  });
});

it('is read from the URL of the page as it was written there', () => {
  for (const ask of [plain, { ...hard, watches: ['a', 'b', 'c'] }]) {
    const options = Object.entries(optionsOf(ask)).filter((entry): entry is [string, string] => entry[1] !== undefined);
    expect(askOf(ask.watches[0]!, new URLSearchParams(options))).toEqual(ask);
  }
});

class FakeSource {
  url: URL | undefined;
  readonly #listeners = new Map<string, (event: { data: string }) => void>();

  readonly open = (() => {
    const source = this;
    return class {
      constructor(url: string) { source.url = new URL(url); }
      addEventListener(type: string, listener: (event: { data: string }) => void) { source.#listeners.set(type, listener); }
    };
  })();

  tell(event: { type: string; [field: string]: unknown }): void {
    this.#listeners.get(event.type)!({ data: JSON.stringify(event) });
  }
}
