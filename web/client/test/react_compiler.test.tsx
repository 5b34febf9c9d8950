// @vitest-environment happy-dom
import { act } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, test } from 'vitest';
import { Notes } from './compiled/Notes.js';
import { Counted, remove, status, upsert } from './line.js';

test('what the React Compiler memoizes loses no update', async () => {
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  expect(String(Notes), 'the test is about compiled code').toMatch(/\$\[\d+\]/);
  const notes = new Counted();
  await notes.snapshot(5, { a: 1, b: 2 });
  const place = document.createElement('div');
  const root = createRoot(place);
  const rendered: string[] = [];
  const log = (what: string) => void rendered.push(what);
  act(() => root.render(<Notes notes={notes} rendered={log} />));
  expect(place.textContent).toBe('in_sync a=1,b=2 3 1 1 2');
  for (let revision = 6; revision < 30; revision++) {
    act(() => notes.line.send(`w@e-${revision}`, upsert('a', revision, revision)));
    expect(place.textContent).toBe(`in_sync a=${revision},b=2 ${revision + 2} ${revision} ${revision} 2`);
  }
  act(() => notes.line.send('w@e-30', remove('b', 30)));
  expect(place.textContent).toBe('in_sync a=29 29 29 29 1');
  const times = rendered.length;
  act(() => notes.line.send('w@e-30', status('stale')));
  expect(place.textContent).toBe('stale a=29 29 29 29 1');
  expect(rendered.length, 'what the resources alone decide is not rendered again').toBe(times);
  act(() => root.unmount());
  expect(notes.listeners).toBe(0);
  notes.tide.close();
});
