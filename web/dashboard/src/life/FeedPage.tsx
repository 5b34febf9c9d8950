import { useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef, useState } from 'react';
import { href, setOptions, useRoute } from '../app/route';
import { useWatches } from '../gateway/watches';
import { KeyText } from '../text/KeyText';
import { count } from '../text/number';
import { type Item, itemsOf, matching } from './feed';
import { PlayButtons } from './PlayButtons';
import { idOf, isCreation, type Known } from './past';
import { Since } from './Since';
import { usePast } from './usePast';
import { usePlayer } from './usePlayer';
import { VersionText } from './Version';
import './life.css';

/** Shows what changes in a watch, the newest first. */
export function FeedPage({ watch }: { watch: string }) {
  const filter = useRoute().options.get('filter') ?? '';
  const [paused, setPaused] = useState(false);
  const facts = useWatches().data?.watches.find(({ name }) => name === watch);
  const past = usePast(watch, `${facts?.epoch} ${facts?.revision}`, paused);
  const items = useMemo(() => matching(itemsOf(past.changes), filter), [past.changes, filter]);
  return (
    <div className="page feed" data-testid="feed">
      <div className="bar">
        <h2>
          Changes of <a href={href('watches', watch)}>{watch}</a>
        </h2>
        <input
          type="search"
          value={filter}
          onChange={({ target }) => setOptions({ filter: target.value || undefined })}
          placeholder="Filter"
          aria-label="Filter by key, kind or value"
        />
        <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? 'Go on' : 'Pause'}
        </button>
        <span className="soft" role="status">
          {count(items.length)} {items.length === 1 ? 'change' : 'changes'}
          {paused && facts && ', paused'}
        </span>
      </div>
      <Feed watch={watch} past={past} items={items} onHold={() => setPaused(true)} />
      {past.more && (
        <button type="button" onClick={past.older} disabled={past.loading}>
          Older changes
        </button>
      )}
      <Since past={past} />
    </div>
  );
}

const rowHeight = 60;

function Feed({ watch, past, items, onHold }: { watch: string; past: Known; items: readonly Item[]; onHold: () => void }) {
  const ids = useMemo(() => items.map(({ change }) => idOf(change)), [items]);
  const box = useRef<HTMLDivElement>(null);
  const { index, playing, onShow, onStep, onPlay, onNewest } = usePlayer(ids);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 10,
    getItemKey: (i) => ids[i]!,
  });
  const to = (move: () => void) => () => {
    onHold();
    move();
  };
  useShown(index, rows.scrollToIndex);
  return (
    <>
      <PlayButtons
        noun="change"
        index={index}
        versions={ids.length}
        playing={playing}
        onStep={(versions) => to(() => onStep(versions))()}
        onPlay={(playing) => to(() => onPlay(playing))()}
        onNewest={onNewest}
      />
      <div className="card scroller" ref={box} tabIndex={0} role="region" aria-label="Changes">
        {items.length === 0 && <p className="soft empty">No changes.</p>}
        <div role="list" aria-label="Changes, newest first" className="rows" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index: i, key, start }) => (
            <div
              key={key}
              ref={rows.measureElement}
              data-index={i}
              role="listitem"
              aria-posinset={i + 1}
              aria-setsize={items.length}
              aria-current={i === index && index > 0 ? 'true' : undefined}
              style={{ transform: `translateY(${start}px)` }}
            >
              <FeedRow watch={watch} item={items[i]!} created={isCreation(items[i]!.change, past)} onShow={to(() => onShow(ids[i]!))} />
            </div>
          ))}
        </div>
      </div>
    </>
  );
}

// The list follows what is shown, and not the reader who scrolls.
function useShown(index: number, scrollTo: (index: number) => void): void {
  const last = useRef(0);
  if (last.current === index) return;
  last.current = index;
  queueMicrotask(() => scrollTo(index));
}

interface RowProps {
  readonly watch: string;
  readonly item: Item;
  readonly created: boolean;
  readonly onShow: () => void;
}

function FeedRow({ watch, item: { change, before }, created, onShow }: RowProps) {
  const options = new URLSearchParams({ key: change.key, ...(change.key_encoding && { key_encoding: change.key_encoding }) });
  return (
    <div className="feed-row" data-type={change.type}>
      <button type="button" className="plain-button" onClick={onShow} aria-label={`Stop at revision ${change.revision}`}>
        ●
      </button>
      <div>
        <a href={href('watches', watch, options)}>
          <KeyText text={change.key} />
        </a>{' '}
        <VersionText change={change} before={before} created={created} />
      </div>
    </div>
  );
}
