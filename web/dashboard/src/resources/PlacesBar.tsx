import type { CSSProperties, KeyboardEvent, PointerEvent } from 'react';
import { count } from '../text/number';
import { brief } from './brief';
import { withUnit } from './format';
import { type Bar, barOf, type Range } from './heat';
import { isNumber } from './number';
import type { Place } from './places';
import type { ShownColumn } from './useColumns';
import './PlacesBar.css';

interface Props {
  readonly places: readonly Place[];
  readonly column: string;
  readonly unit: ShownColumn['unit'];
  readonly total: number;
  /** The rows on the screen. */
  readonly top: number;
  readonly shown: number;
  /** The id of the table that it scrolls. */
  readonly controls: string;
  /** Scrolls to a row. */
  readonly onJump: (index: number) => void;
}

/**
 * A scroll bar that shows which values the sorted column has where: how a number grows from the first row to the last, and
 * where texts begin. Only the values at its places are known, and they are not interpolated.
 */
export function PlacesBar({ places, column, unit, total, top, shown, controls, onJump }: Props) {
  const range = rangeOfPlaces(places);
  const text = ({ value }: Place) => withUnit(value, unit) ?? (value === undefined ? 'none' : brief(value));
  const here = places.findLast(({ index }) => index <= top) ?? places[0]!;
  const jump = (event: PointerEvent<HTMLDivElement>) => {
    const { y, height } = event.currentTarget.getBoundingClientRect();
    onJump(rowAt((event.clientY - y) / height, total));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const to = destination(event.key, places, top, total);
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    onJump(to);
  };
  return (
    <div
      role="scrollbar"
      className="places-bar card"
      tabIndex={0}
      aria-label={`Values of ${column}`}
      aria-orientation="vertical"
      aria-controls={controls}
      aria-valuemin={1}
      aria-valuemax={total}
      aria-valuenow={top + 1}
      aria-valuetext={`row ${count(top + 1)} of ${count(total)}, ${column} from ${text(here)}`}
      data-testid="places"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        jump(event);
      }}
      onPointerMove={(event) => event.currentTarget.hasPointerCapture(event.pointerId) && jump(event)}
      onKeyDown={onKeyDown}
    >
      {places.map((place, i) => (
        <span
          key={place.index}
          className="place"
          title={`row ${count(place.index + 1)}: ${text(place)}`}
          style={styleOf(place, places[i + 1]?.index ?? total, total, barOf(place.value, range))}
        >
          {text(place)}
        </span>
      ))}
      <span className="thumb" style={{ top: percent(top / total), height: percent(shown / total) }} />
    </div>
  );
}

const percent = (share: number) => `${(100 * share).toFixed(2)}%`;

const rowAt = (share: number, total: number) => Math.round(Math.min(1, Math.max(0, share)) * (total - 1));

/** Returns the row to which a key scrolls: from place to place, or to one of the ends. */
function destination(key: string, places: readonly Place[], top: number, total: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
    case 'PageDown':
      return places.find(({ index }) => index > top)?.index ?? total - 1;
    case 'ArrowUp':
    case 'PageUp':
      return places.findLast(({ index }) => index < top)?.index ?? 0;
    case 'Home':
      return 0;
    case 'End':
      return total - 1;
    default:
      return undefined;
  }
}

function rangeOfPlaces(places: readonly Place[]): Range | undefined {
  const numbers = places.flatMap(({ value }) => (isNumber(value) ? [Number(value)] : []));
  const [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
  return low === high || !Number.isFinite(high - low) ? undefined : { low, high };
}

const styleOf = ({ index }: Place, next: number, total: number, bar: Bar | undefined) =>
  ({
    top: percent(index / total),
    height: percent((next - index) / total),
    ...(bar && { '--from': `${bar.from}%`, '--to': `${bar.to}%` }),
  }) as CSSProperties;
