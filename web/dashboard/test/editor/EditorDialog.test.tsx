import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EditorDialog } from '../../src/editor/EditorDialog';
import { FakeGateway, FakeStore, problem } from './gateway';

let gateway: FakeGateway;
let store: FakeStore;
let closed: () => void;
vi.mock('../../src/gateway/tide', () => ({ useStore: () => store.store, isFollowed: () => true }));

const key = 'a/b c?#%';
const path = '/v1/watches/notes/resources/a%2Fb%20c%3F%23%25';

beforeEach(() => {
  gateway = new FakeGateway();
  store = new FakeStore();
  closed = vi.fn();
  vi.stubGlobal('fetch', gateway.fetch);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const field = () => screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Value (JSON)' });
const type = (text: string) => fireEvent.change(field(), { target: { value: text } });
const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }));

async function edit(text: string): Promise<void> {
  const revision = gateway.write(key, text);
  render(<EditorDialog watch="notes" resource={{ key, revision, value: null }} onClose={closed} />);
  await waitFor(() => expect(field().readOnly).toBe(false));
  gateway.asked.length = 0;
}

function create(): void {
  render(<EditorDialog watch="notes" onClose={closed} />);
  fireEvent.change(screen.getByRole('textbox', { name: 'Key' }), { target: { value: key } });
}

describe('editing', () => {
  it('sends the text as it is, for the revision that was loaded', async () => {
    await edit('{"n":12345678901234567890.10}');
    expect(field().value).toBe('{\n  "n": 12345678901234567890.10\n}');
    type('{"n": 12345678901234567890.20 }');
    press('Save');
    await waitFor(() => expect(closed).toHaveBeenCalledOnce());
    expect(gateway.asked).toEqual([`PUT ${path} "1" {"n": 12345678901234567890.20 }`]);
  });

  it('marks and names the hidden characters of a text, which stays as it is', async () => {
    await edit('1');
    const text = '"a\u202eb"';
    type(text);
    const layer = field().previousElementSibling!;
    expect(layer.textContent).toBe(`${text}\n`);
    expect([...layer.querySelectorAll('.hidden-char')].map((mark) => mark.textContent)).toEqual(['\u202e']);
    press('\\u202e in line 1, column 3');
    expect([field().selectionStart, field().selectionEnd]).toEqual([2, 3]);
    press('Save');
    await waitFor(() => expect(closed).toHaveBeenCalledOnce());
    expect(gateway.asked.at(-1)).toBe(`PUT ${path} "1" ${text}`);
  });
  it('names the first hidden characters of many', async () => {
    await edit('1');
    type(`"${'\u2066'.repeat(50)}"`);
    expect(screen.getByText(/50 hidden characters/)).toBeTruthy();
    expect(screen.getAllByRole('button', { name: /u2066 in line/ })).toHaveLength(5);
    type('"\tplain"');
    expect(screen.queryByText(/hidden character/)).toBeNull();
  });

  it('reports a change as soon as the stream does, and shows the current value', async () => {
    await edit('1');
    type('2');
    gateway.write(key, '{"theirs":true}');
    expect(screen.queryByText(/The resource has changed/)).toBeNull();
    act(() => store.show('2', { [key]: '2' }));
    expect(screen.getByRole('alert').textContent).toContain(
      'The resource has changed: it is now at revision 2, but your text is based on 1.',
    );
    press('Show the current value');
    await screen.findByText(/"theirs": true/);
    expect(document.activeElement).toBe(screen.getByRole('region', { name: 'The newer value' }));
    press('Load it and discard my text');
    expect(field().value).toBe('{\n  "theirs": true\n}');
    expect(screen.queryByText(/The resource has changed/)).toBeNull();
  });

  it('overwrites the change of another user only after confirmation', async () => {
    await edit('1');
    type('2');
    gateway.write(key, '"theirs"');
    press('Save');
    await screen.findByText('"theirs"');
    expect(screen.getByRole('alert').textContent).toContain('412: key a/b c?#% is at revision 2, 1 was expected');
    expect(gateway.resources.get(key)?.text).toBe('"theirs"');
    press('Keep my text and overwrite it');
    expect(field().value).toBe('2');
    press('Save');
    await waitFor(() => expect(closed).toHaveBeenCalled());
    expect(gateway.resources.get(key)).toEqual({ revision: 3, text: '2' });
  });

  it('says that the resource was deleted, and creates it again only after confirmation', async () => {
    await edit('1');
    gateway.resources.delete(key);
    act(() => store.show('2', {}));
    expect(screen.getByRole('alert').textContent).toContain('The resource has been deleted.');
    press('Save');
    await screen.findByText('In the gateway: deleted');
    press('Create it again with my text');
    press('Save');
    await waitFor(() => expect(closed).toHaveBeenCalled());
    expect(gateway.asked.at(-1)).toBe(`PUT ${path} * 1`);
  });

  it('does not mistake a stream that is behind for a change', async () => {
    gateway.revision = 4;
    await edit('1');
    act(() => store.show('3', { [key]: '3' }));
    act(() => store.show('4', {}));
    expect(screen.getByRole('alert').textContent).toBe('');
  });

  it('can load keys that cannot be in a URL', async () => {
    const revision = gateway.write('..', '1');
    render(<EditorDialog watch="notes" resource={{ key: '..', revision, value: null }} onClose={closed} />);
    await waitFor(() => expect(field().value).toBe('1'));
    expect(gateway.asked).toEqual(['GET /v1/watches/notes/resources/Li4%3D?key_encoding=base64']);
  });

  it('shows the reason why the resource could not be loaded', async () => {
    gateway.refuse = () => problem(403, 'notes are not yours');
    render(<EditorDialog watch="notes" resource={{ key, revision: '1', value: null }} onClose={closed} />);
    await screen.findByText('403: notes are not yours');
    expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Save' }).disabled).toBe(true);
  });
});

describe('creating', () => {
  it('creates a resource that does not exist yet', async () => {
    create();
    type('[]');
    press('Save');
    await waitFor(() => expect(closed).toHaveBeenCalled());
    expect(gateway.asked).toEqual([`PUT ${path} * []`]);
  });

  it('does not overwrite an existing one', async () => {
    gateway.write(key, '"theirs"');
    create();
    act(() => store.show('1', { [key]: '1' }));
    expect(screen.getByRole('alert').textContent).toContain('A resource with this key already exists, at revision 1.');
    type('2');
    press('Save');
    await screen.findByText('"theirs"');
    expect(closed).not.toHaveBeenCalled();
    expect(gateway.resources.get(key)?.text).toBe('"theirs"');
  });
});

describe('the text', () => {
  it('is reported as invalid at once, with the position of the error', async () => {
    create();
    type('{\n  "a": 1,\n}');
    expect(screen.getByRole('status').textContent).toContain('line 3, column 1');
    expect(field().getAttribute('aria-invalid')).toBe('true');
    press('Save');
    expect(gateway.asked).toEqual([]);
    expect([field().selectionStart, document.activeElement]).toEqual([12, field()]);
  });

  it('is validated once the user stops typing', async () => {
    vi.useFakeTimers();
    gateway.refuse = (_, url) => (url.searchParams.has('validate_only') ? problem(400, 'want a name') : undefined);
    create();
    type('{}');
    act(() => vi.advanceTimersByTime(499));
    type('{"a":1}');
    act(() => vi.advanceTimersByTime(499));
    expect(gateway.asked).toEqual([]);
    await act(() => vi.advanceTimersByTimeAsync(1));
    expect(gateway.asked).toEqual([`PUT ${path}?validate_only=true * {"a":1}`]);
    expect(screen.getByRole('status').textContent).toBe('Rejected (400): want a name');
  });

  it('is validated on demand', async () => {
    create();
    type('{}');
    press('Check');
    await screen.findByText('Valid');
    expect(gateway.resources.size).toBe(0);
  });

  it('is formatted by a button', () => {
    create();
    type('{"a":1.0}');
    press('Format');
    expect(field().value).toBe('{\n  "a": 1.0\n}');
  });

  it('is not discarded by Escape without confirmation', () => {
    create();
    fireEvent.keyDown(field(), { key: 'Escape' });
    expect(closed).not.toHaveBeenCalled();
    press('Keep editing');
    fireEvent.keyDown(field(), { key: 'Escape' });
    press('Discard changes');
    expect(closed).toHaveBeenCalledOnce();
  });

  it('needs no confirmation if nothing was changed', async () => {
    await edit('1');
    fireEvent.keyDown(field(), { key: 'Escape' });
    expect(closed).toHaveBeenCalledOnce();
  });

  it.each([
    [403, 'not yours'],
    [405, 'read-only'],
    [413, 'too large'],
    [503, 'draining'],
  ])('stays if a save is refused with %d', async (status, detail) => {
    create();
    type('1');
    gateway.refuse = () => problem(status, detail);
    press('Save');
    await screen.findByText(`${status}: ${detail}`);
    expect(field().value).toBe('1');
    expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Save' }).disabled).toBe(false);
  });

  it('stays if the gateway does not answer', async () => {
    create();
    type('1');
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('failed to fetch')));
    press('Save');
    await screen.findByText('the gateway does not answer (failed to fetch)');
  });
});
