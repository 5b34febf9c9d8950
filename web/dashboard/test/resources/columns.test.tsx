import { act, renderHook } from '@testing-library/react';
import { expect, it } from 'vitest';
import { LoadedModel } from '../../src/resources/model';
import { useColumns } from '../../src/resources/useColumns';
import { Source } from './source';

const values = Object.fromEntries(
  Array.from({ length: 40 }, (_, i) => [
    `service-${i}`,
    {
      address: `10.0.0.${i}:8000`,
      state: i % 9 ? 'passing' : 'critical',
      cpu: i / 10,
      note: `a text about the service that is longer than any other ${i}`,
    },
  ]),
);

function columns(width: number, chosen: string | null = null) {
  const source = new Source();
  source.snapshot(1, values);
  const model = new LoadedModel(source.store);
  for (const _ of model.rows.arrange({ sort: { column: 'key', descending: false }, filter: undefined }, source.resources));
  const { result } = renderHook(() => useColumns(model, chosen, width));
  act(() => {});
  return result.current;
}

const ids = (width: number, chosen?: string) => columns(width, chosen).shown.map(({ title }) => title);
const widthOf = (width: number) => columns(width).shown.reduce((sum, { width }) => sum + width, 0);

it('columns that would be cut off are left out, the least telling ones first', () => {
  const all = widthOf(Infinity);
  expect(ids(Infinity)).toEqual(['key', 'address', 'state', 'cpu', 'note']);
  expect(ids(all)).toEqual(ids(Infinity));
  expect(ids(all - 1)).toEqual(['key', 'address', 'state', 'cpu']);
  for (const width of [60, 50, 45]) expect(widthOf(width)).toBeLessThanOrEqual(width);
  expect(ids(1)).toEqual(['key', 'state']);
  expect(ids(1, 'key,address,note')).toEqual(['key', 'address', 'note']);
});
