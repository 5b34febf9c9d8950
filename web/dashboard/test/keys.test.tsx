// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DeleteDialog } from '../src/editor/DeleteDialog';
import { Difference } from '../src/editor/Difference';
import { EditorDialog } from '../src/editor/EditorDialog';
import { ResourcesPage } from '../src/resources/ResourcesPage';
import { KeyText } from '../src/text/KeyText';
import { visible } from '../src/text/visible';
import { EventRow } from '../src/wire/EventRow';
import { Source } from './resources/source';

let source: Source;
vi.mock('../src/gateway/tide', async () => {
  const { useState } = await import('react');
  return {
    useStore: () => useState(() => source.store)[0],
    useWindow: () => undefined,
    useCounts: () => undefined,
    isFollowed: () => true,
  };
});

const key = 'invoice\u202efdp.exe\u0007';
const shown = 'invoice\\u202efdp.exe\\u0007';
const resource = { key, revision: '5', value: 1 };
const pass = () => act(() => vi.advanceTimersByTimeAsync(50));

beforeEach(() => {
  vi.useFakeTimers();
  source = new Source();
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ watches: [{ name: 'files', source: 's', state: 'in_sync' }] })));
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

describe('a hidden character', () => {
  it.each([
    ...[0x00, 0x09, 0x0a, 0x1f, 0x7f, 0x80, 0x9f, 0x061c, 0x200e, 0x200f, 0x2028, 0x2029],
    ...[0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
  ])('is an escape: %i', (code) => {
    expect(visible(`a${String.fromCharCode(code)}b`)).toBe(`a\\u${code.toString(16).padStart(4, '0')}b`);
  });

  it('is not a letter of any script, nor a sign', () => {
    const text = 'home/ü/日本/שלום/مرحبا/👩‍👩‍👧/\\u202e "~"';
    expect(visible(text)).toBe(text);
  });
});

describe('a value with hidden characters', () => {
  const text = 'pay\u202e00.1\u2066 €\n\tand';
  const seen = 'pay\\u202e00.1\\u2066 €\n\tand';

  it('is shown with escapes in the table, its heads, the detail and a difference', async () => {
    location.hash = '#/watches/files';
    render(<ResourcesPage watch="files" />);
    await pass();
    await act(() => source.snapshot(5, { a: { text, 'na\u202eme': 'x', list: [text] } }));
    await pass();
    const grid = screen.getByTestId('resources');
    expect(grid.textContent).not.toMatch(/[\u202e\u2066]/);
    expect(
      within(grid)
        .getAllByRole('gridcell')
        .map(({ textContent }) => textContent),
    ).toContain(seen);
    fireEvent.click(within(grid).getAllByRole('gridcell')[0]!);
    await pass();
    const tree = screen.getByRole('tree');
    expect(tree.textContent).toContain(`"${seen}"`);
    expect(tree.textContent).toContain('na\\u202eme: ');
    expect(tree.textContent).not.toMatch(/[\u202e\u2066]/);
    cleanup();
    render(<Difference before={`"a"`} after={`"${text}"`} />);
    expect(screen.getByLabelText('Changes').textContent).toContain(`+ "${'pay\\u202e00.1'}`);
  });
});

describe('a key with hidden characters', () => {
  it('is shown with escapes, isolated, in the table and in the detail', async () => {
    location.hash = '#/watches/files';
    render(<ResourcesPage watch="files" />);
    await pass();
    await act(() => source.snapshot(5, { [key]: 1 }));
    await pass();
    const cell = within(screen.getByTestId('resources'))
      .getAllByRole('gridcell')
      .find(({ className }) => className.includes('name'))!;
    expect(cell.textContent).toBe(shown);
    expect(cell.querySelector('bdi')?.textContent).toBe(shown);
    fireEvent.click(cell);
    await pass();
    const detail = screen.getByTestId('resource-detail');
    expect(within(detail).getByRole('heading', { level: 3 }).textContent).toBe(shown);
    expect(detail.getAttribute('aria-label')).toBe(`Resource ${shown}`);
    expect(detail.querySelector('h3 bdi')).not.toBeNull();
  });

  it('is copied as it is by the button of the detail', async () => {
    const writeText = vi.fn(() => Promise.resolve());
    vi.stubGlobal('navigator', { ...navigator, clipboard: { writeText } });
    location.hash = `#/watches/files?key=${encodeURIComponent(key)}`;
    render(<ResourcesPage watch="files" />);
    await pass();
    await act(() => source.snapshot(5, { [key]: 1 }));
    await pass();
    fireEvent.click(screen.getByRole('button', { name: 'Copy key' }));
    await pass();
    expect(writeText).toHaveBeenCalledWith(key);
    expect(screen.getByText('Copied')).toBeTruthy();
  });

  it('is shown with escapes in the dialogs', () => {
    HTMLDialogElement.prototype.showModal ??= () => {};
    render(<DeleteDialog watch="files" resource={resource} onClose={() => {}} />);
    expect(screen.getByText((_, element) => element?.tagName === 'H2')!.textContent).toBe(`Delete “${shown}”?`);
    cleanup();
    render(<EditorDialog watch="files" resource={resource} onClose={() => {}} />);
    expect(screen.getByText((_, element) => element?.tagName === 'H2')!.textContent).toBe(`Edit “${shown}”`);
  });

  it('is shown with escapes in the events of a stream', () => {
    const raw = `event: upsert\ndata: ${JSON.stringify({ type: 'upsert', watch: 'files', ...resource })}\n\n`;
    render(<EventRow frame={{ number: 1, type: 'upsert', id: '', raw, bytes: raw.length, at: 0, after: 0 }} open onToggle={() => {}} />);
    expect(document.querySelector('.event-row .key')!.textContent).toBe(shown);
    expect(document.querySelector('pre')!.textContent).not.toContain('\u202e');
    expect(document.querySelector('pre')!.textContent).toContain(`"key":"${shown}"`);
  });
});

describe('a selection that is copied', () => {
  function copied(select: (bdi: HTMLElement, range: Range) => void): string | undefined {
    render(
      <p>
        before <KeyText text={key} />
      </p>,
    );
    const bdi = document.querySelector('bdi')!;
    const range = document.createRange();
    select(bdi, range);
    document.getSelection()!.removeAllRanges();
    document.getSelection()!.addRange(range);
    const setData = vi.fn<(type: string, text: string) => void>();
    fireEvent.copy(bdi, { clipboardData: { setData } });
    return setData.mock.calls[0]?.[1];
  }

  it('has the characters and not their escapes', () => {
    expect(copied((bdi, range) => range.selectNodeContents(bdi))).toBe(key);
  });

  it('may be a part of a key', () => {
    expect(
      copied((bdi, range) => {
        range.setStart(bdi.childNodes[0]!, 5);
        range.setEnd(bdi.childNodes[2]!, 3);
      }),
    ).toBe('ce\u202efdp');
  });

  it('is left to the browser if it is more than a key', () => {
    expect(copied((bdi, range) => range.selectNodeContents(bdi.parentElement!))).toBeUndefined();
  });
});
