import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { find } from '../../src/palette/find';
import { Palette } from '../../src/palette/Palette';
import { useOpenTable } from '../../src/resources/openTable';
import type { TableModel } from '../../src/resources/table';
import { Source } from '../resources/source';

vi.mock('../../src/gateway/watches', () => ({
  useWatches: () => ({
    data: {
      watches: [
        { name: 'pods', count: 2 },
        { name: 'nodes', count: 1 },
      ],
    },
  }),
}));

let source: Source;
function Table() {
  useOpenTable('pods', { resources: source.resources } as Partial<TableModel> as TableModel);
  return null;
}

const options = () => screen.queryAllByRole('option').map(({ textContent }) => textContent?.trim());
const press = (key: string, more = {}) => fireEvent.keyDown(document.activeElement ?? document.body, { key, ...more });
const type = async (value: string) => act(async () => fireEvent.change(screen.getByRole('combobox'), { target: { value } }));

async function open() {
  render(
    <>
      <Palette
        pages={[
          ['', 'Overview'],
          ['stream', 'Stream'],
        ]}
      />
      <Table />
    </>,
  );
  await act(async () => press('k', { ctrlKey: true }));
  await screen.findByRole('combobox');
}

beforeAll(() => import('../../src/palette/Search')); // the chunk is loaded
beforeEach(() => {
  source = new Source();
  source.snapshot(1, { 'web/1': 1, 'db/1': 1 });
  location.hash = '#/watches/pods?sort=cpu';
});
afterEach(cleanup);

describe('the palette', () => {
  it('opens with Ctrl-K, and goes to a key of the open watch', async () => {
    await open();
    expect(options()).toEqual(['watch pods 2', 'watch nodes 1', 'page Overview', 'page Stream']);
    await type('web');
    expect(options()).toEqual(['key web/1 in pods']);
    press('Enter');
    expect(location.hash).toBe('#/watches/pods?sort=cpu&key=web%2F1');
    expect(screen.queryByRole('combobox')).toBeNull();
  });

  it('opens with a button in the header', async () => {
    render(<Palette pages={[]} />);
    fireEvent.click(screen.getByRole('button', { name: 'Search' }));
    expect(await screen.findByRole('combobox')).toBeTruthy();
  });

  it('is used with the arrow keys, and says when nothing is found', async () => {
    await open();
    press('ArrowDown');
    const active = screen.getByRole('combobox').getAttribute('aria-activedescendant');
    expect(document.getElementById(active!)?.textContent).toContain('nodes');
    press('ArrowUp');
    press('ArrowUp');
    expect(screen.getAllByRole('option').at(-1)!.getAttribute('aria-selected')).toBe('true');
    await type('zzz');
    expect(options()).toEqual([]);
    screen.getByText('Nothing found.');
  });

  it('finds texts with all words, those that begin with them first, and not too many', () => {
    expect(find('we 1', ['db/1', 'x/we/1', 'Web/1'])).toEqual(['x/we/1', 'Web/1']);
    expect(find('web', ['x/web', 'web'])).toEqual(['web', 'x/web']);
    expect(
      find(
        'a',
        Array.from({ length: 100_000 }, (_, i) => `a${i}`),
      ),
    ).toHaveLength(30);
  });
});
