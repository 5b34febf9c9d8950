import { type KeyboardEvent, useDeferredValue, useId, useMemo, useRef, useState } from 'react';
import { href, parseRoute } from '../app/route';
import { Dialog } from '../editor/Dialog';
import { useWatches } from '../gateway/watches';
import { openTable } from '../resources/openTable';
import { optionsOfKey } from '../resources/options';
import { KeyText } from '../text/KeyText';
import { count } from '../text/number';
import { find, type Place } from './find';
import './Palette.css';

/** A dialog that searches the watches, the keys of the open watch, and the pages. */
export function Search({ pages, onClose }: { pages: ReadonlyArray<readonly [string, string]>; onClose: () => void }) {
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef<HTMLUListElement>(null);
  const places = usePlaces(useDeferredValue(typed), pages);
  const active = Math.min(at, places.length - 1);
  const go = ({ hash }: Place) => {
    onClose();
    location.hash = hash;
  };
  const moveTo = (to: number) => {
    setAt((to + places.length) % Math.max(1, places.length));
    list.current?.children[(to + places.length) % Math.max(1, places.length)]?.scrollIntoView({ block: 'nearest' });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') moveTo(active + 1);
    else if (event.key === 'ArrowUp') moveTo(active - 1);
    else if (event.key === 'Enter' && places[active]) go(places[active]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to" small className="palette" onLeave={onClose}>
      <input
        type="search"
        role="combobox"
        autoFocus
        autoComplete="off"
        spellCheck={false}
        aria-label="Watches, keys and pages"
        aria-expanded={places.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        aria-activedescendant={places[active] ? `${id}-${active}` : undefined}
        placeholder="A watch, a key of the open watch, or a page"
        value={typed}
        onChange={({ target }) => {
          setTyped(target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul ref={list} id={`${id}-list`} role="listbox" aria-label="Places" className="places">
        {places.map((place, i) => (
          <li key={`${place.kind} ${place.hash}`} id={`${id}-${i}`} role="option" aria-selected={i === active} onClick={() => go(place)}>
            <span className="soft kind">{place.kind}</span>{' '}
            <span className="text">
              <KeyText text={place.text} />
            </span>{' '}
            <span className="soft">{place.note}</span>
          </li>
        ))}
      </ul>
      <p role="status" className="soft">
        {places.length === 0 ? 'Nothing found.' : ''}
      </p>
    </Dialog>
  );
}

function usePlaces(typed: string, pages: ReadonlyArray<readonly [string, string]>): readonly Place[] {
  const watches = useWatches().data?.watches;
  return useMemo(() => {
    const found = new Set(find(typed, watches?.map(({ name }) => name) ?? []));
    const titles = new Set(
      find(
        typed,
        pages.map(([, title]) => title),
      ),
    );
    return [
      ...(watches ?? [])
        .filter(({ name }) => found.has(name))
        .map(
          ({ name, count: resources, partial }): Place => ({
            kind: 'watch',
            text: name,
            note: partial ? '' : count(resources),
            hash: href('watches', name),
          }),
        ),
      ...keyPlaces(typed),
      ...pages
        .filter(([, title]) => titles.has(title))
        .map(([page, title]): Place => ({ kind: 'page', text: title, note: '', hash: href(page) })),
    ];
  }, [typed, watches, pages]);
}

// Without a text, all keys would be found.
function keyPlaces(typed: string): Place[] {
  const table = openTable();
  if (!table || typed.trim() === '') return [];
  const { name, options } = parseRoute(location.hash);
  return find(typed, table.model.resources.keys()).map((rowKey) => ({
    kind: 'key',
    text: table.model.resources.get(rowKey)?.key ?? rowKey,
    note: `in ${table.watch}`,
    hash: href('watches', name, optionsOfKey(options, rowKey)),
  }));
}
