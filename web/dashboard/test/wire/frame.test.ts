import { describe, expect, it } from 'vitest';
import { readFrame, subjectOf } from '../../src/wire/frame';

describe('a frame', () => {
  it.each([
    ['retry: 1717\n\n', 'retry', ''],
    [': heartbeat\n\n', 'comment', ''],
    ['event: upsert\ndata: {"type":"upsert","watch":"notes","key":"a"}\n\n', 'upsert', ''],
    ['event: delete\ndata: {"key":"\\nid: no"}\nid: notes@a-1,x@b-2\n\n', 'delete', 'notes@a-1,x@b-2'],
    ['id:5\nevent:hello\n\n', 'hello', '5'],
    ['data: x\n\n', 'message', ''],
  ])('%j is of type %s', (raw, type, id) => {
    expect(readFrame(raw, 'sse')).toEqual({ type, id });
  });
  it.each([
    ['{"type":"upsert","watch":"notes"}\n', 'upsert', ''],
    ['{"type":"position","id":"notes@a-1"}\n', 'position', 'notes@a-1'],
    ['{"watch":"notes","type":"reset"}\n', 'reset', ''],
    ['nonsense\n', 'message', ''],
  ])('%j is of type %s in NDJSON', (raw, type, id) => {
    expect(readFrame(raw, 'ndjson')).toEqual({ type, id });
  });
});

describe('its subject', () => {
  const data = '{"type":"upsert","watch":"notes","key":"a/b","revision":"18446744073709551615","value":{"watch":"no"}}';
  it.each([`event: upsert\ndata: ${data}\nid: x\n\n`, `${data}\n`])('is said by its data: %j', (raw) => {
    expect(subjectOf({ raw })).toEqual({ watch: 'notes', key: 'a/b', revision: '18446744073709551615' });
  });
  it('is all watches for hello', () => {
    expect(subjectOf({ raw: '{"type":"hello","watches":[{"watch":"a","mode":"snapshot"},{"watch":"b","mode":"resume"}]}\n' }).watch).toBe(
      'a, b',
    );
  });
  it.each([': heartbeat\n\n', 'data: nonsense\n\n', 'data: null\n\n', 'nonsense'])('is nothing for %j', (raw) => {
    expect(subjectOf({ raw })).toEqual({ watch: '', key: '', revision: '' });
  });
});
