import { memo, useEffect, useMemo, useRef } from 'react';
import { duration } from '../text/duration';
import { KeyText } from '../text/KeyText';
import { bytes, count } from '../text/number';
import { visible } from '../text/visible';
import { type Frame, subjectOf } from './frame';

// More text would take the browser long to lay out.
const maxChars = 64 << 10;

interface Props {
  frame: Frame;
  open: boolean;
  onToggle(number: number): void;
}

/** One frame; if open, with its text on the wire. */
export const EventRow = memo(
  function EventRow({ frame, open, onToggle }: Props) {
    const { watch, key, revision } = useMemo(() => subjectOf(frame), [frame]);
    const position = frame.id || revision;
    return (
      <>
        <button type="button" className="event-row" aria-expanded={open} onClick={() => onToggle(frame.number)}>
          <span>
            <span className="pill" data-type={frame.type}>
              {frame.type}
            </span>
          </span>
          <span className="watch">{watch}</span>
          <span className="key mono">
            <KeyText text={key} />
          </span>
          <span className="id mono" title={position}>
            {position}
          </span>
          <span className="number size">{bytes(frame.bytes)}</span>
          <span className="number after">{elapsed(frame.after)}</span>
        </button>
        {open && <Raw frame={frame} />}
      </>
    );
  },
  (a, b) => a.frame === b.frame && a.open === b.open,
);

function Raw({ frame: { raw, number, bytes: size } }: { frame: Frame }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    void box.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <div className="raw" ref={box}>
      <p className="soft">
        frame {count(number)}, {count(size)} {size === 1 ? 'byte' : 'bytes'}, as on the wire
      </p>
      <pre tabIndex={0} aria-label={`Frame ${number}`}>
        {lines(raw.slice(0, maxChars))}
      </pre>
      {raw.length > maxChars && <p className="soft">and {count(raw.length - maxChars)} more characters</p>}
    </div>
  );
}

// Line ends are part of what a client reads. Hidden characters must not change the order of
// what is shown.
const lines = (raw: string) => raw.split('\n').map(visible).join('↵\n');

/** Formats the time between two frames, exactly if it is short. */
export function elapsed(ms: number): string {
  if (ms < 1) return '0 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms);
}
