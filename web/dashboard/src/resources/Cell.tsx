import { type CSSProperties, memo, useRef } from 'react';
import { Moment } from '../app/Age';
import { KeyText, ValueText } from '../text/KeyText';
import { Badge } from './Badge';

interface Props {
  readonly text: string;
  /** The value itself, where the text is rounded. */
  readonly raw?: string;
  /** It is in base64. */
  readonly encoded?: boolean;
  /** A class; `name` is that of the key, `word` that of an enumeration, and `time` that of a time, which becomes an age. */
  readonly kind: string;
  /** The bar behind a number, in percents; undefined: there is none. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** The value of a row in a column. It flashes when the value changes. */
export const Cell = memo(function Cell({ text, raw = text, encoded = false, kind, from, to }: Props) {
  const style = to === undefined ? undefined : ({ '--from': `${from}%`, '--to': `${to}%` } as CSSProperties);
  return (
    <div
      role="gridcell"
      className={`cell ${kind}${style ? ' heat' : ''}`}
      data-flash={useFlash(raw)}
      style={style}
      title={raw === text ? undefined : raw}
    >
      {encoded && <span className="encoding">base64</span>}
      <Content text={text} kind={kind} />
    </div>
  );
});

function Content({ text, kind }: Pick<Props, 'text' | 'kind'>) {
  if (kind === 'name') return <KeyText text={text} />;
  if (kind === 'time') return <Moment of={text} />;
  return kind === 'word' && text !== '' ? <Badge text={text} /> : <ValueText text={text} />;
}

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
