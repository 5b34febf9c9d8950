import type { Ask } from './request';

/** One thing that was on the wire: an event, or a comment, a `retry:`, a position. */
export interface Frame {
  /** Counts from 1, through all connections of the page. */
  readonly number: number;
  /** The type of the event; `comment` or `retry` where there is none; `cut` for what never ended. */
  readonly type: string;
  /** The position that it brings; empty if it brings none. */
  readonly id: string;
  /** As it was on the wire. */
  readonly raw: string;
  /** On the wire, before any compression. */
  readonly bytes: number;
  /** When it came, in ms as of performance.now. */
  readonly at: number;
  /** How long after the one before, in ms. */
  readonly after: number;
}

const besides = new Set(['comment', 'retry', 'position', 'heartbeat', 'cut']);

/** Whether a type is that of an event, and not of what lies between events. */
export const isEvent = (type: string) => !besides.has(type);

/** What an event is about, as its data says. */
export interface Subject {
  readonly watch: string;
  readonly key: string;
  readonly revision: string;
}

/** The type of what is on the wire, and the position that it brings. */
export function readFrame(raw: string, format: Ask['format']): Pick<Frame, 'type' | 'id'> {
  if (format === 'ndjson') return readLine(raw);
  const id = field(raw, 'id');
  const type = field(raw, 'event');
  if (type !== undefined) return { type, id: id ?? '' };
  if (field(raw, 'data') !== undefined) return { type: 'message', id: id ?? '' };
  return { type: field(raw, 'retry') === undefined ? 'comment' : 'retry', id: id ?? '' };
}

function readLine(raw: string): Pick<Frame, 'type' | 'id'> {
  const known = /^\{"type":"(\w+)"/.exec(raw)?.[1]; // of a hundred thousand lines, few are looked at
  if (known && known !== 'position') return { type: known, id: '' };
  const { type = 'message', id = '' } = parsed(raw) as { type?: string; id?: string };
  return { type, id };
}

// Data is one line of JSON, in which no line can begin.
function field(raw: string, name: string): string | undefined {
  const at = raw.startsWith(`${name}:`) ? 0 : raw.indexOf(`\n${name}:`) + 1;
  if (at === 0 && !raw.startsWith(`${name}:`)) return undefined;
  const end = raw.indexOf('\n', at);
  return raw.slice(at + name.length + 1, end < 0 ? undefined : end).replace(/^ /, '');
}

/** What a frame is about; everything is empty where it is about nothing. */
export function subjectOf({ raw }: Pick<Frame, 'raw'>): Subject {
  const data = parsed(raw.startsWith('{') ? raw : field(raw, 'data') ?? '{}');
  const { watch = '', key = '', revision = '', watches } = data as Partial<Subject> & { watches?: Array<{ watch: string }> };
  return { watch: watches ? watches.map(({ watch }) => watch).join(', ') : watch, key, revision };
}

// What cannot be read is shown all the same, without what it is about.
function parsed(json: string): object {
  try {
    return Object(JSON.parse(json)) as object;
  } catch {
    return {};
  }
}
