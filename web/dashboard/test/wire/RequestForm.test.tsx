import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { RequestForm } from '../../src/wire/RequestForm';
import type { StreamRequest } from '../../src/wire/request';
import type { Connection } from '../../src/wire/wire';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('keeps the focus when its button to disconnect goes away', () => {
  vi.stubGlobal('fetch', () => new Promise(() => {}));
  const request: StreamRequest = { watches: ['notes'], prefix: '', format: 'sse', position: '' };
  const form = (state: Connection['state']) => (
    <RequestForm
      request={request}
      connection={{ state, position: '' } as Connection}
      onChange={vi.fn()}
      onConnect={vi.fn()}
      onDisconnect={() => rerender(form('left'))}
    />
  );
  const { rerender } = render(form('open'));
  const button = screen.getByRole('button', { name: 'Disconnect' });
  button.focus();
  fireEvent.click(button);
  expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Connect' }));
});
