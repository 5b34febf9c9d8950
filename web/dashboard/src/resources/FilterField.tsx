import { type ChangeEvent, type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from 'react';
import { flushSync } from 'react-dom';
import { setOptions } from '../app/route';
import { isMistake, type Mistake, parseQuery } from '../query/query';
import { accepted, type Suggestion, suggest } from '../query/suggest';
import { unknownField, valuesOf } from '../query/values';
import { ValueText } from '../text/KeyText';
import { count } from '../text/number';
import { column } from './column';
import type { TableModel } from './table';
import type { Columns } from './useColumns';
import type { Source } from './useSource';
import { useStatus } from './useTableModel';
import './FilterField.css';

const throttleMs = 100; // browsers limit how often the URL may change
const sampleSize = 500;

interface Props {
  readonly filter: string;
  readonly model: TableModel;
  readonly source: Source;
  readonly columns: Columns;
  /** The number of resources of the watch; undefined if the gateway does not tell it. */
  readonly size: number | undefined;
}

/** The filter of the table: a combobox that suggests fields and values, and the number of matches. */
export function FilterField({ filter, model, source, columns, size }: Props) {
  const arranging = useStatus(model, ({ arranging }) => arranging);
  const matching = useStatus(model, ({ matching }) => matching);
  const total = useStatus(model, ({ total }) => total);
  const [typed, setTyped] = useTyped(filter);
  const query = useMemo(() => parseQuery(typed), [typed]);
  const list = useSuggestions(typed, setTyped, model, columns);
  const id = useId();
  const busy = arranging || source.searching;
  const found = filter && foundText(matching, source.cel ? size && Math.max(size, total) : total);
  const mistake = isMistake(query) ? query : undefined;
  return (
    <div className="row-filter">
      <div className="filter-box" onBlur={list.close}>
        <input
          ref={list.field}
          type="search"
          role="combobox"
          autoComplete="off"
          spellCheck={false}
          aria-label="Filter"
          aria-expanded={list.open}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={list.active >= 0 ? `${id}-${list.active}` : undefined}
          aria-invalid={mistake !== undefined}
          aria-describedby={`${id}-note`}
          placeholder="Filter: text, state:critical, cpu>2"
          title={'Text in the key or the value, or conditions: state:critical  cpu>2  !legacy  name:web*  "two words"'}
          value={typed}
          onChange={list.onChange}
          onKeyDown={list.onKeyDown}
        />
        <ul id={`${id}-list`} role="listbox" aria-label="Suggestions" className="suggestions card" hidden={!list.open}>
          {list.suggestions.map((suggestion, i) => (
            <li
              key={suggestion.text}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === list.active}
              onPointerDown={(event) => {
                event.preventDefault(); // the field keeps the focus
                list.accept(suggestion);
              }}
            >
              <span>
                <ValueText text={suggestion.title} />
              </span>{' '}
              <span className="soft">{suggestion.note}</span>
            </li>
          ))}
        </ul>
      </div>
      <span className="soft found" title={source.cel && `filter=${source.cel}`}>
        {filter && busy ? 'Searching…' : found}
        {filter && !busy && source.cel && ' · by the gateway'}
      </span>
      <span role="status" className="visually-hidden">
        {useAnnounced(found, filter)}
      </span>
      <p id={`${id}-note`} className={mistake ? 'filter-note wrong' : 'filter-note soft'}>
        {mistake && !isBeingTyped(mistake, typed) ? mistakeText(mistake) : source.refusal && refusalText(source)}
        {!mistake && <Unknown query={query} model={model} columns={columns} />}
      </p>
    </div>
  );
}

const foundText = (matching: number, of: number | undefined) => (of === undefined ? count(matching) : `${count(matching)} of ${count(of)}`);

// A value that is missing at the end is not a mistake yet.
const isBeingTyped = ({ from }: Mistake, typed: string) => from >= typed.length && /[:<>=]$/.test(typed);

const refusalText = ({ refusal, tooMany }: Source) =>
  tooMany > 0
    ? `Not filtered: ${count(tooMany)} resources are too many to be filtered in this page. By the gateway: ${refusal}`
    : `Filtered in this page: ${refusal}`;

const mistakeText = ({ from, reason }: Mistake) => `Character ${from + 1}: ${reason}.`;

function Unknown({ query, model, columns }: { query: ReturnType<typeof parseQuery>; model: TableModel; columns: Columns }) {
  const field = useMemo(() => (isMistake(query) ? undefined : unknownField(query, () => model.rows.sample(sampleSize))), [query, model]);
  if (field === undefined) return null;
  const [best] = suggest(field, field.length, fieldsOf(columns), () => []);
  const name = column(field).title;
  return (
    <>
      No resource here has a field “{name}”{best && `: did you mean “${best.title}”?`} To search for the text, put it in quotes.
    </>
  );
}

// The text of the field, which becomes the filter in the URL while it is no mistake.
function useTyped(filter: string): [string, (text: string) => void] {
  const [typed, setTyped] = useState(filter);
  const written = useRef(filter);
  const writtenAt = useRef(-Infinity);
  useEffect(() => {
    // the URL was changed elsewhere
    if (filter !== written.current) setTyped(filter);
    written.current = filter;
  }, [filter]);
  useEffect(() => {
    if (typed === written.current || isMistake(parseQuery(typed))) return;
    const timer = setTimeout(
      () => {
        written.current = typed;
        writtenAt.current = performance.now();
        setOptions({ filter: typed || undefined });
      },
      Math.max(0, writtenAt.current + throttleMs - performance.now()),
    );
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, setTyped];
}

function useSuggestions(typed: string, setTyped: (text: string) => void, model: TableModel, columns: Columns) {
  const field = useRef<HTMLInputElement>(null);
  const [suggestions, setSuggestions] = useState<readonly Suggestion[]>([]);
  const [active, setActive] = useState(-1);
  const show = (suggestions: readonly Suggestion[]) => {
    setSuggestions(suggestions);
    setActive(-1);
  };
  const lookUp = (text: string, cursor: number) => {
    const values = (field: string) => valuesOf(field, model.rows.sample(sampleSize));
    show(suggest(text, cursor, fieldsOf(columns), values));
  };
  const accept = (suggestion: Suggestion) => {
    const { text, cursor } = accepted(typed, suggestion);
    flushSync(() => setTyped(text));
    field.current?.setSelectionRange(cursor, cursor); // at once, since the user may go on typing
    lookUp(text, cursor);
  };
  const onChange = ({ target }: ChangeEvent<HTMLInputElement>) => {
    setTyped(target.value);
    lookUp(target.value, target.selectionStart ?? target.value.length);
  };
  const places = suggestions.length + 1; // and the field itself, which is -1
  const move = (by: number) => setActive(((active + 1 + by + places) % places) - 1);
  const onKeyDown = (event: KeyboardEvent) => {
    const chosen = suggestions[active];
    if (suggestions.length === 0) return;
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'Enter' && chosen) accept(chosen);
    else if (event.key === 'Escape' || event.key === 'Enter') show([]);
    else return;
    event.preventDefault();
  };
  return { field, suggestions, active, open: suggestions.length > 0, accept, onChange, onKeyDown, close: () => show([]) };
}

const fieldsOf = ({ known, fields }: Columns) =>
  known.map((id) => ({ id, title: column(id).title, numeric: fields.find((field) => field.id === id)?.numeric ?? false }));

const announceMs = 500;

// The number may change with each frame. A screen reader reads it only after the
// filter changed.
function useAnnounced(text: string, cause: string): string {
  const [announced, setAnnounced] = useState('');
  const newest = useRef(text);
  useEffect(() => {
    newest.current = text;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the cause makes an announcement
  useEffect(() => {
    const timer = setTimeout(() => setAnnounced(newest.current), announceMs);
    return () => clearTimeout(timer);
  }, [cause]);
  return announced;
}
