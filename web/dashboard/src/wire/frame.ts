import type { StreamRequest } from './request';

/** One frame of a stream: an event, a comment, a `retry:` or a position. */
export interface Frame {
  /** From 1, across all connections of the page. */
  readonly number: number;
  /** The type of the event; `comment` or `retry` if it is none; `cut` if it is incomplete. */
  readonly type: string;
  /** Its position; empty if it has none. */
  readonly id: string;
  /** As it was on the wire. */
  readonly raw: string;
  /** On the wire, before any compression. */
  readonly bytes: number;
  /** When it arrived, in ms as of performance.now. */
  readonly at: number;
  /** The time since the previous frame, in ms. */
  readonly after: number;
}

const otherTypes = new Set(['comment', 'retry', 'position', 'heartbeat', 'cut']);

/** Reports whether a type is that of an event. */
export const isEvent = (type: string) => !otherTypes.has(type);

/** The subject of an event, according to its data. */
export interface Subject {
  readonly watch: string;
  readonly key: string;
  readonly revision: string;
}

/** Returns the type and the position of a frame. */
export function readFrame(raw: string, format: StreamRequest['format']): Pick<Frame, 'type' | 'id'> {
  if (format === 'ndjson') return readLine(raw);
  const id = field(raw, 'id');
  const type = field(raw, 'event');
  if (type !== undefined) return { type, id: id ?? '' };
  if (field(raw, 'data') !== undefined) return { type: 'message', id: id ?? '' };
  return { type: field(raw, 'retry') === undefined ? 'comment' : 'retry', id: id ?? '' };
}

function readLine(raw: string): Pick<Frame, 'type' | 'id'> {
  const known = /^\{"type":"(\w+)"/.exec(raw)?.[1]; // much faster than parsing every line
  if (known && known !== 'position') return { type: known, id: '' };
  const { type = 'message', id = '' } = parsed(raw) as { type?: string; id?: string };
  return { type, id };
}

// The data is JSON on one line, so it cannot be mistaken for a field.
function field(raw: string, name: string): string | undefined {
  const at = raw.startsWith(`${name}:`) ? 0 : raw.indexOf(`\n${name}:`) + 1;
  if (at === 0 && !raw.startsWith(`${name}:`)) return undefined;
  const end = raw.indexOf('\n', at);
  return raw.slice(at + name.length + 1, end < 0 ? undefined : end).replace(/^ /, '');
}

/** Returns the subject of a frame; empty if it has none. */
export function subjectOf({ raw }: Pick<Frame, 'raw'>): Subject {
  const data = parsed(raw.startsWith('{') ? raw : (field(raw, 'data') ?? '{}'));
  const { watch = '', key = '', revision = '', watches } = data as Partial<Subject> & { watches?: Array<{ watch: string }> };
  return { watch: watches ? watches.map(({ watch }) => watch).join(', ') : watch, key, revision };
}

// A frame that cannot be parsed is still shown, without a subject.
function parsed(json: string): object {
  try {
    return Object(JSON.parse(json)) as object;
  } catch {
    return {};
  }
}
