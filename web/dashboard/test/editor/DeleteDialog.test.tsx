import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DeleteDialog } from '../../src/editor/DeleteDialog';
import { FakeGateway, FakeStore, problem } from './gateway';

let gateway: FakeGateway;
let store: FakeStore;
let closed: () => void;
vi.mock('../../src/gateway/tide', () => ({ useStore: () => store.store, isFollowed: () => true }));

beforeEach(() => {
  gateway = new FakeGateway();
  store = new FakeStore();
  closed = vi.fn();
  vi.stubGlobal('fetch', gateway.fetch);
  const revision = gateway.write('a', '1');
  render(<DeleteDialog watch="notes" resource={{ key: 'a', revision, value: 1 }} onClose={closed} />);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const press = (name: string) => fireEvent.click(screen.getByRole('button', { name }));

it('deletes the value that was shown, after confirmation', async () => {
  screen.getByRole('dialog', { name: /^Delete “ ?a ?”\?$/ }); // happy-dom takes bdi for a block
  expect(gateway.asked).toEqual([]);
  press('Delete');
  await waitFor(() => expect(closed).toHaveBeenCalledOnce());
  expect(gateway.asked).toEqual(['DELETE /v1/watches/notes/resources/a "1"']);
});

it('deletes nothing when it is closed', () => {
  fireEvent.keyDown(screen.getByRole('dialog'), { key: 'Escape' });
  expect(closed).toHaveBeenCalledOnce();
  expect(gateway.resources.size).toBe(1);
});

it('shows the change of another user before it deletes the resource', async () => {
  gateway.write('a', '"theirs"');
  press('Delete');
  await screen.findByText('"theirs"');
  expect(gateway.resources.size).toBe(1);
  press('Delete this newer value');
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(gateway.asked.at(-1)).toBe('DELETE /v1/watches/notes/resources/a "2"');
});

it('immediately reports that the resource was changed or deleted', () => {
  act(() => store.show('2', { a: '2' }));
  expect(screen.getByRole('alert').textContent).toContain('The resource has changed: it is now at revision 2.');
  act(() => store.show('3', {}));
  expect(screen.getByRole('alert').textContent).toBe('Another user has already deleted it.');
  expect(screen.queryByRole('button', { name: 'Delete' })).toBeNull();
});

it('reports that another user has already deleted the resource', async () => {
  gateway.resources.delete('a');
  press('Delete');
  await screen.findByText(/has already deleted it/);
});

it('shows the reason for a refusal', async () => {
  gateway.refuse = () => problem(405, 'watch "notes" is read-only');
  press('Delete');
  await screen.findByText('405: watch "notes" is read-only');
  expect(closed).not.toHaveBeenCalled();
});
