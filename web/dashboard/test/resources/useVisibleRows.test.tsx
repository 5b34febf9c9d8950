import { cleanup, render } from '@testing-library/react';
import { type RefObject, useRef } from 'react';
import { afterEach, expect, it, vi } from 'vitest';
import { useVisibleRows } from '../../src/resources/useVisibleRows';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

it('takes a resize of an element that has just been removed', () => {
  let resized = () => {};
  vi.stubGlobal(
    'ResizeObserver',
    class {
      constructor(callback: () => void) {
        resized = callback;
      }
      observe() {}
      disconnect() {}
    },
  );
  let scroller: RefObject<HTMLDivElement | null>;
  function Scrolled() {
    scroller = useRef<HTMLDivElement>(null);
    useVisibleRows(scroller, 10);
    return <div ref={scroller} />;
  }
  render(<Scrolled />);
  scroller!.current = null; // as before the effects end
  expect(resized).not.toThrow();
});
