import { useMemo } from 'react';
import { count } from '../text/number';
import { hiddenIn, visible } from '../text/visible';
import { placeOf } from './json';

const most = 5;

/**
 * Names the characters of a text that cannot be seen in it, or that change the order in
 * which it is shown: a browser does not show them in a field.
 */
export function HiddenChars({ text, onSelect }: { text: string; onSelect(at: number): void }) {
  const hidden = useMemo(() => hiddenIn(text), [text]);
  if (hidden.length === 0) return null;
  return (
    <div className="hidden-chars" role="note">
      {hidden.length === 1 ? '1 hidden character' : `${count(hidden.length)} hidden characters`}:{' '}
      {hidden.slice(0, most).map((at) => (
        <Place key={at} text={text} at={at} onSelect={onSelect} />
      ))}
      {hidden.length > most && '…'}
    </div>
  );
}

function Place({ text, at, onSelect }: { text: string; at: number; onSelect(at: number): void }) {
  const { line, column } = placeOf(text, at);
  return (
    <>
      <button type="button" onClick={() => onSelect(at)}>
        {visible(text.charAt(at))} in line {line}, column {column}
      </button>{' '}
    </>
  );
}
