import { useEffect, useId, useMemo, useRef, useState } from 'react';
import type uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { onSettings } from '../app/settings';
import type { Curves } from './curves';
import { type ChartOptions, drawn, plot } from './plot';
import './Chart.css';

interface Shown {
  readonly title: string;
  /** A description of the chart for screen readers. */
  readonly summary: string;
  readonly data: Curves;
  readonly format: (value: number) => string;
  readonly whole?: boolean;
  readonly bars?: boolean;
}

/** Draws numbers over time, at full width and in the colours of the theme. */
export function Chart({ title, summary, data, format, whole = false, bars = false }: Shown) {
  const id = useId();
  const options = useMemo<ChartOptions>(() => ({ format, whole, bars }), [format, whole, bars]);
  const names = data.curves.map(({ name }) => name).join('\n');
  const canvas = useRef<HTMLDivElement>(null);
  const drawing = useRef<uPlot>(undefined);
  const [under, setUnder] = useState<number | null>(null);

  useEffect(() => {
    const into = canvas.current!;
    const chart = plot(into, names ? names.split('\n') : [], options, setUnder);
    drawing.current = chart;
    const ended = follow(into, chart);
    return () => {
      ended();
      chart.destroy();
    };
  }, [names, options]);
  useEffect(() => drawing.current?.setData(drawn(data, options)), [data, options]);

  return (
    <figure className="chart card" aria-labelledby={id}>
      <figcaption>
        <h3 id={id}>{title}</h3>
        <ul>
          {data.curves.map(({ name, values }, i) => (
            <li key={name} className={`series-${i + 1}`}>
              {name} <span className="number">{label(values[under ?? values.length - 1], format)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={canvas} className="canvas" role="img" aria-label={`${title}: ${summary}`} />
    </figure>
  );
}

const label = (value: number | null | undefined, format: (value: number) => string) =>
  value === null || value === undefined ? '' : format(value);

/** Keeps a chart as wide as its element, and in the colours of the theme. */
function follow(into: HTMLElement, chart: uPlot): () => void {
  const sized = new ResizeObserver(() => {
    if (into.clientWidth !== chart.width) chart.setSize({ width: into.clientWidth, height: chart.height });
  });
  sized.observe(into);
  const unsubscribe = onSettings(() => chart.redraw(false));
  return () => {
    sized.disconnect();
    unsubscribe();
  };
}
