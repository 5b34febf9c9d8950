import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { keysOf } from '../src/spec.js';
import type { Store } from '../src/store.js';
import { type Watches, watch } from '../src/watch.js';
import { endOfSnapshot, hello, pass, reset, Server, upsert } from './server.js';
import { type Client, read, type State, type Transcript } from './transcript.js';

const files = readdirSync(new URL('../../../gateway/testdata', import.meta.url)).filter((name) => name.endsWith('.txt'));

let server: Server;
let tide: Watches | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
});

afterEach(async () => {
  tide?.close();
  await pass();
  vi.unstubAllGlobals();
});

describe.each(files)('%s', (file) => {
  const transcript = read(file);
  const streams = transcript.clients.filter(({ status }) => status.startsWith('200 text/event-stream'));

  test('has a client', () => {
    expect(transcript.clients.length).toBeGreaterThan(0);
  });

  test.runIf(streams.length > 0).each(streams.map((client) => [client.name, client] as const))(
    '%s holds what the upstream has',
    async (_, client) => {
      const names = watchesOf(client);
      const specs = names.map((name) => specOf(client, name));
      tide = watch('http://gateway.test', { watches: specs });
      await pass();
      await prepare(transcript, client, specs);
      server.last.accept();
      let compared = 0;
      let shown = specs;
      for (const { text, over, now, move } of client.blocks) {
        if (move) shown = shown.map((spec) => moved(spec, move));
        server.last.send(text.replaceAll('RANDOM', '1000'));
        if (over) server.last.end();
        await pass();
        for (const [i, spec] of specs.entries()) compared += check(tide.store(spec), now.get(spec.watch), shown[i]!);
      }
      // A refused client and a watch that does not exist have no resources.
      const welcome = client.blocks.some(({ text }) => text.includes('event: hello'));
      expect(compared > 0).toBe(welcome);
    },
  );
});

/** Gives the client the position of the transcript, and the state that belongs to it. */
async function prepare({ states }: Transcript, { lastEventId }: Client, specs: Spec[]) {
  const names = specs.map((spec) => spec.watch);
  const positions = lastEventId.split(',').filter((one) => names.includes(one.split('@')[0]!));
  if (positions.length === 0) return;
  server.last.accept(`${hello(names) + positions.map((one) => history(one, states, specs)).join('')}id: ${lastEventId}\n\n`);
  await pass();
  server.last.cut();
  await pass(2_000);
  expect(server.last.lastEventId).toBe(lastEventId);
}

function history(position: string, states: Map<string, State>, specs: Spec[]): string {
  const [, name = '', epoch = '', upTo = '', asOf] = position.match(/^(.*)@(.*)-(\d+)(?:\/(\d+))?$/)!;
  const spec = specs.find(({ watch }) => watch === name)!;
  const known = spec.order || spec.by ? derivedOf(states, name, upTo, spec) : states.get(`${name}@${epoch}-${asOf ?? upTo}`);
  const whole = known ?? new Map([['ghost', 1]]);
  let text = reset(name, `${name}@${epoch}-0/${upTo}`);
  // If the snapshot was cut off, only its first few resources have arrived.
  const some = asOf === undefined ? [...whole] : [...whole].slice(0, Number(upTo));
  for (const [key, value] of some) text += upsert(name, key, 1, value);
  return asOf === undefined ? text + endOfSnapshot(name, Number(upTo), some.length) : text;
}

/** Compares what is shown with the upstream, unless the store reports that they differ. */
function check({ view: { state, resources } }: Store, upstream: State | undefined, spec: Spec): number {
  if (!upstream) expect(state).not.toBe('in_sync');
  if (!upstream || state === 'connecting' || state === 'priming' || state === 'stale') return 0;
  expect(new Map([...resources].map(([key, { value }]) => [key, value]))).toEqual(narrowed(upstream, spec));
  return 1;
}

// What the labels and the filters of the transcripts mean.
const meanings: Record<string, (value: any) => boolean> = {
  '': () => true,
  'value.state!="passing"': ({ state }) => state !== 'passing',
  'value.state != "passing"': ({ state }) => state !== 'passing',
  'value.state=="down"': ({ state }) => state === 'down',
  'value.state == "passing"': ({ state }) => state === 'passing',
  'zone in (b,c)': ({ labels }) => ['b', 'c'].includes(labels?.zone),
};

/** Returns what a window, or counts, had at a revision: their epoch is not that of the upstream. */
function derivedOf(states: Map<string, State>, name: string, revision: string, spec: Spec): State | undefined {
  const found = [...states].find(([position]) => position.startsWith(`${name}@`) && position.endsWith(`-${revision}`));
  return found && narrowed(found[1], spec);
}

function narrowed(upstream: State, spec: Spec): State {
  const { prefix, keys, labels, filter, fields } = spec;
  const wanted = (key: string) => key.startsWith(prefix) && (keys === '' || keysOf(keys).includes(key));
  const mine = sorted(
    [...upstream].filter(([key, value]) => wanted(key) && meanings[labels]!(value) && meanings[filter]!(value)),
    spec,
  );
  if (spec.by) return counted(mine, spec);
  const names = fields.split(',');
  const kept = (value: unknown) =>
    fields ? Object.fromEntries(Object.entries(value as object).filter(([name]) => names.includes(name))) : value;
  return new Map(mine.map(([key, value]) => [key, kept(value)]));
}

/** Returns the groups of some resources, whose fields are texts and numbers. */
function counted(rows: [string, any][], { by, sum }: Spec): State {
  const groups = new Map<string, any[]>();
  for (const [, value] of rows) {
    const values = by.split(',').map((name) => value[name] ?? null);
    const key = values.length === 1 ? values[0] : JSON.stringify(values);
    groups.set(key, [...(groups.get(key) ?? []), value[sum]]);
  }
  return new Map(
    [...groups].map(([key, all]) => {
      const numbers = all.filter((one) => typeof one === 'number');
      const sums = { sum: numbers.reduce((a, b) => a + b, 0), min: Math.min(...numbers), max: Math.max(...numbers) };
      return [key, { count: all.length, ...(numbers.length > 0 && sums) }];
    }),
  );
}

/** Returns the rows of a window: those of the transcripts are sorted by one number, which comes last where it is absent. */
function sorted(rows: [string, any][], { order, limit, offset }: Spec) {
  if (!order) return rows;
  const name = order.replace('-', '');
  const places = rows.map((row) => ({ row, place: row[1][name] === undefined ? Infinity : row[1][name] * (order === name ? 1 : -1) }));
  places.sort((a, b) => (a.place === b.place ? (a.row[0] < b.row[0] ? -1 : 1) : a.place - b.place));
  return places.map(({ row }) => row).slice(Number(offset), Number(offset) + Number(limit));
}

const watchesOf = ({ request }: Client) =>
  request.pathname.match(/^\/v1\/watches\/([^/]*)\/(?:counts\/)?events$/)?.slice(1) ?? request.searchParams.getAll('watch');

type Spec = ReturnType<typeof specOf>;

function moved(spec: Spec, move: URLSearchParams): Spec {
  return { ...spec, limit: Number(move.get('limit') ?? spec.limit), offset: Number(move.get('offset') ?? 0) };
}

function specOf({ request: { searchParams } }: Client, watch: string) {
  const of = (parameter: string) => [`${parameter}.${watch}`, parameter].flatMap((name) => searchParams.getAll(name)).join();
  return {
    watch,
    prefix: of('prefix'),
    keys: of('keys'),
    first: of('first'),
    labels: of('labels'),
    filter: of('filter'),
    fields: of('fields'),
    by: of('by'),
    sum: of('sum'),
    order: of('order'),
    limit: Number(of('limit')),
    offset: Number(of('offset')),
  };
}
