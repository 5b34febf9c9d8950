import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deleteView, forgetViews, maxViews, renameView, saveView, views } from '../../src/views/saved';
import { ViewMenu } from '../../src/views/ViewMenu';

let tag: string | undefined;
vi.mock('../../src/gateway/session', () => ({ tag: () => tag }));

const names = () => views().map(({ name }) => name);
const view = (name: string) => ({ name, hash: `#/watches/pods?filter=${name}` });

beforeEach(() => {
  tag = undefined;
  localStorage.clear();
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

describe('saved views', () => {
  it('are saved, renamed and deleted', () => {
    expect(saveView(view(' a '))).toBe('');
    expect(saveView(view('b'))).toBe('');
    expect(saveView({ name: 'a', hash: '#/watches/pods?filter=other' })).toBe('');
    expect(views()).toEqual([view('b'), { name: 'a', hash: '#/watches/pods?filter=other' }]);
    expect(renameView('b', 'a')).toContain('already');
    expect(renameView('b', 'c')).toBe('');
    expect(deleteView('a')).toBe('');
    expect(names()).toEqual(['c']);
  });

  it('are limited, and so are their names', () => {
    for (let i = 0; i < maxViews; i++) expect(saveView(view(String(i)))).toBe('');
    expect(saveView(view('one more'))).toContain('delete one first');
    expect(saveView(view('0'))).toBe('');
    expect(saveView(view('  '))).toContain('name');
    expect(saveView(view('x'.repeat(81)))).toContain('characters');
    expect(saveView({ name: 'long', hash: `#/watches/${'x'.repeat(4000)}` })).toContain('too long');
  });

  it('are those of the user, and are erased when one signs out', () => {
    tag = 'ann';
    saveView(view('hers'));
    tag = 'bob';
    expect(names()).toEqual([]);
    saveView(view('his'));
    localStorage.setItem('watchtide settings', '{}');
    forgetViews();
    expect(names()).toEqual([]);
    tag = 'ann';
    expect(names()).toEqual([]);
    expect(localStorage.getItem('watchtide settings')).toBe('{}');
  });

  it('are none where the storage has something else, or is refused', () => {
    localStorage.setItem(
      'watchtide views ',
      '[{"name":1},{"name":"x","hash":"javascript:alert(1)"},null,{"name":"y","hash":"#/watches/a"}]',
    );
    expect(names()).toEqual(['y']);
    localStorage.setItem('watchtide views ', 'no JSON');
    expect(names()).toEqual([]);
    const setItem = () => {
      throw new Error('full');
    };
    vi.stubGlobal('localStorage', { getItem: () => null, setItem });
    expect(saveView(view('a'))).toContain('does not allow');
  });
});

describe('the menu of views', () => {
  it('saves the view of the page, and lists those of the watch', async () => {
    saveView({ name: 'elsewhere', hash: '#/watches/nodes' });
    location.hash = '#/watches/pods?filter=state%3Acritical';
    render(<ViewMenu watch="pods" />);
    fireEvent.click(screen.getByRole('button', { name: 'Views' }));
    fireEvent.change(screen.getByRole('textbox', { name: 'Name of the view' }), { target: { value: 'bad ones' } });
    await act(async () => fireEvent.click(screen.getByRole('button', { name: 'Save this view' })));
    const links = screen.getAllByRole('link').map((link) => `${link.textContent} ${link.getAttribute('href')}`);
    expect(links).toEqual(['bad ones #/watches/pods?filter=state%3Acritical']);
    fireEvent.click(screen.getByRole('button', { name: 'Rename bad ones' }));
    fireEvent.change(screen.getByRole('textbox', { name: 'New name of bad ones' }), { target: { value: 'critical' } });
    fireEvent.click(screen.getByRole('button', { name: 'Rename' }));
    expect(screen.getByRole('link').textContent).toBe('critical');
    fireEvent.click(screen.getByRole('button', { name: 'Delete critical' }));
    expect(screen.queryByRole('link')).toBeNull();
  });
});
