import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
// @ts-expect-error a script without types
import { generate } from '../scripts/protocol.js';

const document = JSON.parse(readFileSync(new URL('../../../openapi/watchtidev1/openapi.json', import.meta.url), 'utf8'));
const written = readFileSync(new URL('../src/protocol.ts', import.meta.url), 'utf8');

test('the types are those of the contract', () => {
  expect(written).toBe(generate(document));
});

test('a new field of the contract is a field of the type', () => {
  const changed = structuredClone(document);
  changed.components.schemas.GoodbyeEvent.properties.alternate = { type: 'string' };
  expect(generate(changed)).toContain('  alternate?: string;\n');
});
