import { type KeyboardEvent, type PointerEvent, useState } from 'react';

const name = 'watchtide detail';
const usual = 38;
const [least, most] = [20, 75];
const step = 2;

/** Returns the share of the detail in the width of the page, in percent, and a function that changes it; it is remembered in this browser. */
export function useShare(): readonly [number, (share: number) => void] {
  const [share, setShare] = useState(remembered);
  const change = (wanted: number) => {
    const share = Math.round(Math.min(most, Math.max(least, wanted)));
    setShare(share);
    try {
      localStorage.setItem(name, String(share));
    } catch {
      // the browser keeps nothing: it lasts as long as the page
    }
  };
  return [share, change];
}

function remembered(): number {
  try {
    const share = Number(localStorage.getItem(name) ?? usual);
    return share >= least && share <= most ? share : usual;
  } catch {
    return usual;
  }
}

/** A bar between the table and the detail that is dragged, or moved with the arrow keys. */
export function Splitter({ share, onChange }: { share: number; onChange: (share: number) => void }) {
  const onPointerMove = ({ currentTarget, clientX, pointerId }: PointerEvent<HTMLDivElement>) => {
    if (!currentTarget.hasPointerCapture(pointerId)) return;
    const { right, width } = currentTarget.parentElement!.getBoundingClientRect();
    onChange((100 * (right - clientX)) / width);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowLeft: share + step, ArrowRight: share - step, Home: most, End: least, Enter: usual }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onChange(to);
  };
  return (
    <div
      role="separator"
      className="splitter"
      tabIndex={0}
      aria-label="Width of the detail"
      aria-orientation="vertical"
      aria-valuenow={share}
      aria-valuemin={least}
      aria-valuemax={most}
      aria-valuetext={`${share} %`}
      onPointerDown={({ currentTarget, pointerId }) => currentTarget.setPointerCapture(pointerId)}
      onPointerMove={onPointerMove}
      onDoubleClick={() => onChange(usual)}
      onKeyDown={onKeyDown}
    />
  );
}
