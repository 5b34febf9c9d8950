import { useEffect, useRef } from 'react';
import { onSettings } from '../app/settings';
import { heat } from './scale';

/**
 * Shows latencies over time as two bands of a heat map: below the median, above it what one in a
 * hundred exceeds. The darker, the slower; where nothing was delivered, there is nothing.
 */
export function HeatStrip({ p50, p99 }: { p50: readonly (number | null)[]; p99: readonly (number | null)[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = () => paint(canvas.current!, [p99, p50]);
    draw();
    return onSettings(draw);
  }, [p50, p99]);
  return <canvas ref={canvas} className="heat" width={Math.max(1, p50.length)} height={2} aria-hidden="true" />;
}

function paint(canvas: HTMLCanvasElement, bands: readonly (readonly (number | null)[])[]): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = getComputedStyle(canvas).color;
  bands.forEach((values, y) => {
    values.forEach((value, x) => {
      if (value === null) return;
      context.globalAlpha = 0.12 + 0.88 * heat(value);
      context.fillRect(x, y, 1, 1);
    });
  });
}
