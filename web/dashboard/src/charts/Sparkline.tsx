import { useRef } from 'react';
import { rate } from '../text/number';
import { most, type Sample } from './samples';
import { area, height, outlines, width } from './sparkline';
import { useVisible } from './visible';
import './Sparkline.css';

// The last two minutes.
const windowMs = 120_000;

/** A small chart of the last two minutes, with a description for screen readers. */
export function Sparkline({ samples }: { samples: readonly Sample[] }) {
  const place = useRef<HTMLSpanElement>(null);
  const visible = useVisible(place);
  const max = most(samples, windowMs);
  const runs = visible ? outlines(samples, windowMs, Math.max(1, max || 0)) : [];
  return (
    <span className="sparkline" ref={place}>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
        {runs.map((run, i) => (
          <path key={i} className="area" d={area(run)} />
        ))}
        {runs.map((run, i) => (
          <path key={i} className="line" d={run} />
        ))}
      </svg>
      <span className="visually-hidden">{Number.isNaN(max) ? '' : `, at most ${rate(max)} in the last two minutes`}</span>
    </span>
  );
}
