import { memo, useRef } from 'react';
import { KeyText } from '../text/KeyText';

/** The value of a row in a column. It flashes when the value changes. */
export const Cell = memo(function Cell({ text, kind }: { text: string; kind: string }) {
  return (
    <div role="gridcell" className={`cell ${kind}`} data-flash={useFlash(text)}>
      {kind === 'name' ? <KeyText text={text} /> : text}
    </div>
  );
});

/**
 * Alternates between two values, for two equal animations: an animation only starts
 * again under another name. undefined before the first change.
 */
export function useFlash(shown: unknown): 'odd' | 'even' | undefined {
  const last = useRef({ shown, changes: 0 });
  if (last.current.shown !== shown) last.current = { shown, changes: last.current.changes + 1 };
  const { changes } = last.current;
  return changes === 0 ? undefined : changes % 2 === 1 ? 'odd' : 'even';
}
