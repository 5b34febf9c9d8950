import { readFileSync } from 'node:fs';

/** The resources of a watch: key in a map → value. */
export type State = Map<string, unknown>;

/** One of the gateway's golden transcripts: the actions of the upstreams, and what each client read meanwhile. */
export interface Transcript {
  clients: Client[];
  /** Every state of a watch, by its position (`services@e1-10`). */
  states: Map<string, State>;
}

export interface Client {
  name: string;
  status: string;
  request: URL;
  lastEventId: string;
  blocks: Block[];
}

/** What a client read after one step, and the state of all watches then. */
export interface Block {
  text: string;
  over: boolean;
  now: Map<string, State>;
  /** The window that the stream goes on with, from this block on. */
  move: URLSearchParams | undefined;
}

const folder = new URL('../../../gateway/testdata/', import.meta.url);

// The client that read a block, if several could have.
const readers: Record<string, string> = { 'reset_ahead.txt pass 200ms': 'b' };

export function read(file: string): Transcript {
  const [script = '', output = ''] = readFileSync(new URL(file, folder), 'utf8').split(/^-{64}\n/m);
  const upstreams = new Upstreams();
  const blocks = split(output);
  const clients = new Map<string, Client>();
  for (const line of script.split('\n').filter((line) => line && !line.startsWith('#'))) {
    upstreams.play(line);
    while (blocks[0]?.line === line) {
      const block = blocks.shift()!;
      let client = block.begins ? begin(block, line, clients) : readerOf(file, block, clients);
      // The stream is told before the client that has moved its window.
      const [, verb, stream = '', query] = line.split(' ');
      const move = verb === 'move' && block.text.startsWith('event:') ? new URLSearchParams(query) : undefined;
      if (move) client = clients.get(stream)!;
      client.blocks.push({ text: block.text, over: block.ends !== undefined, now: upstreams.now(), move });
    }
  }
  if (blocks.length > 0) throw new Error(`${file}: no line of the script for ${blocks[0]!.line}`);
  return { clients: [...clients.values()], states: upstreams.states };
}

interface RawBlock {
  line: string;
  text: string;
  begins?: RegExpMatchArray | undefined;
  ends?: string | undefined;
}

function split(output: string): RawBlock[] {
  const blocks: RawBlock[] = [];
  for (const part of output.split(/^(?=\[\w+: \d|>>> )/m)) {
    const begins = part.match(/^\[(\w+): (\d+)[^,]*, (.*)\]\n$/);
    if (begins) {
      blocks.push({ line: '', text: '', begins });
      continue;
    }
    const [, line = '', rest = ''] = part.match(/^>>> (.*)\n([^]*)$/) ?? [];
    const ends = rest.match(/^\[(\w+): end of body.*\]$/m)?.[1];
    const block = { line, text: rest.replace(/^\[.*\]\n/m, ''), ends };
    if (blocks.at(-1)?.line === '') Object.assign(blocks.at(-1)!, block);
    else blocks.push(block);
  }
  return blocks;
}

function begin({ begins }: RawBlock, line: string, clients: Map<string, Client>): Client {
  const [, name = '', status = '', type = ''] = begins!;
  const [, , path = '', header = ''] = line.split(' ');
  const request = new URL(path, 'http://gateway.test');
  const lastEventId = header.match(/^Last-Event-ID:(.*)/)?.[1] ?? request.searchParams.get('last_event_id') ?? '';
  const client = { name, status: `${status} ${type}`, request, lastEventId, blocks: [] };
  clients.set(name, client);
  return client;
}

function readerOf(file: string, { line, ends, text }: RawBlock, clients: Map<string, Client>): Client {
  const live = [...clients.values()].filter(({ blocks }) => !blocks.some(({ over }) => over));
  const lines = text.startsWith('{');
  const one = clients.get(ends ?? readers[`${file} ${line}`] ?? '') ?? live.find(({ status }) => status.includes('ndjson') === lines);
  if (!one) throw new Error(`${file}: no client reads the text after ${line}`);
  return one;
}

/** The upstreams of a script: `services upsert KEY REVISION VALUE`, and so on. */
class Upstreams {
  readonly states = new Map<string, State>();
  readonly #committed = new Map<string, State>();
  readonly #open = new Map<string, { epoch: string; state: State }>();

  now(): Map<string, State> {
    return new Map(this.#committed);
  }

  play(line: string): void {
    const [watch = '', verb = '', first = '', , ...value] = line.split(' ');
    const open = this.#open.get(watch);
    switch (verb) {
      case 'reset':
        this.#open.set(watch, { epoch: first, state: new Map() });
        return;
      case 'upsert':
        open?.state.set(key(first), JSON.parse(value.join(' ')));
        return;
      case 'delete':
        open?.state.delete(key(first));
        return;
      case 'commit': {
        if (!open) return;
        const state = new Map(open.state);
        this.#committed.set(watch, state);
        this.states.set(`${watch}@${open.epoch}-${first}`, state);
      }
    }
  }
}

// A key in a script: a word, or a string quoted as in Go.
function key(word: string): string {
  if (!word.startsWith('"')) return word;
  const bytes = word.slice(1, -1).match(/\\x([0-9a-f]{2})/) ? binary(word) : undefined;
  return bytes ?? JSON.parse(word);
}

function binary(word: string): string {
  const latin = word.slice(1, -1).replace(/\\x([0-9a-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return /[\x80-\xff]/.test(latin) ? `\udfff${Buffer.from(latin, 'latin1').toString('base64')}` : latin;
}
