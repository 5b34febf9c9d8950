import { useVirtualizer } from '@tanstack/react-virtual';
import { type UIEvent, useEffect, useMemo, useRef, useState } from 'react';
import { count } from '../text/number';
import { EventRow } from './EventRow';
import type { LogContents } from './log';

interface Props {
  kept: LogContents;
  /** The current contents, while the list is paused. */
  newest: LogContents;
  held: boolean;
  hidden: ReadonlySet<string>;
  onHold(): void;
  onGo(): void;
}

const rowHeight = 34;

/**
 * Lists the kept frames, and stays at the newest, at the bottom. The list is paused
 * when the user scrolls up or opens a frame.
 */
export function EventList({ kept, newest, held, hidden, onHold, onGo }: Props) {
  const frames = useMemo(() => (hidden.size === 0 ? kept.frames : kept.frames.filter(({ type }) => !hidden.has(type))), [kept, hidden]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const box = useRef<HTMLDivElement>(null);
  const top = useRef(0);
  const rows = useVirtualizer({
    count: frames.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 10,
    getItemKey: (i) => frames[i]!.number,
  });
  useEffect(() => {
    if (!held && frames.length > 0) rows.scrollToIndex(frames.length - 1, { align: 'end' });
  }, [frames, held, rows]);

  const scrolled = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent) => {
    const up = scrollTop < top.current - 1 && scrollTop + clientHeight < scrollHeight - rowHeight;
    top.current = scrollTop;
    if (up) onHold();
  };
  const toggle = (number: number) => {
    onHold();
    setOpen((before) => {
      const next = new Set(before);
      if (!next.delete(number)) next.add(number);
      return next;
    });
  };
  const more = lastNumber(newest) - lastNumber(kept);
  return (
    <div className="events card">
      <div className="event-row columns" aria-hidden="true">
        <span>type</span>
        <span>watch</span>
        <span>key</span>
        <span>position or revision</span>
        <span className="number">size</span>
        <span className="number">after</span>
      </div>
      <div className="scroller" ref={box} onScroll={scrolled} tabIndex={0} role="region" aria-label="Received frames">
        {frames.length === 0 && <p className="soft empty">{kept.types.size === 0 ? 'Nothing yet.' : 'All received frames are hidden.'}</p>}
        <div role="list" aria-label="Frames, oldest first" data-testid="wire" style={{ height: rows.getTotalSize() }} className="rows">
          {rows.getVirtualItems().map(({ index, key, start }) => {
            const frame = frames[index]!;
            return (
              <div
                key={key}
                ref={rows.measureElement}
                data-index={index}
                data-event={frame.type}
                role="listitem"
                aria-posinset={index + 1}
                aria-setsize={frames.length}
                style={{ transform: `translateY(${start}px)` }}
              >
                <EventRow frame={frame} open={open.has(frame.number)} onToggle={toggle} />
              </div>
            );
          })}
        </div>
      </div>
      {held && (
        <button type="button" className="more" onClick={onGo}>
          Paused{more > 0 && `, ${count(more)} newer`}: jump to the newest ↓
        </button>
      )}
    </div>
  );
}

const lastNumber = ({ frames }: LogContents) => frames.at(-1)?.number ?? 0;
