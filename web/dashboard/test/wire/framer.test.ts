import { describe, expect, it } from 'vitest';
import { Framer } from '../../src/wire/framer';

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (frames: Uint8Array[]) => frames.map((frame) => new TextDecoder().decode(frame));

const wires = {
  sse: ['retry: 1717\n\n', ': heartbeat\n\n', 'event: upsert\ndata: {"key":"ä\\n"}\nid: a-1\n\n', '\n', ': one\n: two\n\n'],
  ndjson: ['{"type":"hello"}\n', '{"type":"upsert","key":"ä"}\n', '\n', '{"type":"heartbeat"}\n'],
} as const;

describe.each(['sse', 'ndjson'] as const)('%s', (format) => {
  const frames = wires[format];

  it('is cut into the same frames wherever its bytes are cut', () => {
    const bytes = encode(frames.join(''));
    for (let size = 1; size <= bytes.length; size++) {
      const framer = new Framer(format);
      const found: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += size) found.push(...framer.push(bytes.subarray(at, at + size)));
      expect(decode(found), `in pieces of ${size}`).toEqual(frames);
      expect(framer.end()).toEqual([]);
    }
  });

  it('returns the incomplete frame at the end', () => {
    const framer = new Framer(format);
    expect(decode(framer.push(encode(`${frames[0]}event: de`)))).toEqual([frames[0]]);
    framer.push(encode('lete'));
    expect(decode(framer.end())).toEqual(['event: delete']);
  });
});

it('copies the bytes of a chunk that may be reused', () => {
  const framer = new Framer('sse');
  const chunk = encode('data: 1');
  framer.push(chunk);
  chunk.fill(0);
  expect(decode(framer.push(encode('\n\n')))).toEqual(['data: 1\n\n']);
});
