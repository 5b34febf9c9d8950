import { RefusedError, type View } from '@watchtide/client';
import type { Watch } from '@watchtide/protocol';
import { type CSSProperties, type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { Boundary, lazily } from '../app/Boundary';
import { href, setOptions, useRoute } from '../app/route';
import { DeleteDialog } from '../editor/DeleteDialog';
import { useWatches } from '../gateway/watches';
import { KeyPanel } from '../keys/KeyPanel';
import { isMistake, parseQuery, type Query } from '../query/query';
import { SignIn } from '../session/SignIn';
import { KeyText } from '../text/KeyText';
import { count } from '../text/number';
import { ViewMenu } from '../views/ViewMenu';
import { ColumnMenu } from './ColumnMenu';
import { column } from './column';
import { Detail, type Dialog } from './Detail';
import { FilterField } from './FilterField';
import { useOpenTable } from './openTable';
import { closeKey, openedKey, openKey } from './options';
import { parseSort } from './order';
import { PauseButtons } from './PauseButtons';
import { Splitter, useShare } from './Splitter';
import { Summary } from './Summary';
import { Table } from './Table';
import { Tiles } from './Tiles';
import type { TableModel } from './table';
import { type Columns, searchedIn, useColumns } from './useColumns';
import { useFreshness } from './useFreshness';
import { type Source, useSource } from './useSource';
import { useStatus, useTableModel } from './useTableModel';
import './ResourcesPage.css';

const EditorDialog = lazily(() => import('../editor/EditorDialog').then(({ EditorDialog }) => EditorDialog));

/** Shows the resources of a watch. */
export function ResourcesPage({ watch }: { watch: string }) {
  const [attempt, setAttempt] = useState(0); // another one while the watch is listed
  const onListed = useCallback(() => setAttempt(attempt + 1), [attempt]);
  return <Followed key={attempt} watch={watch} attempt={attempt} onListed={onListed} />;
}

interface FollowedProps extends Pick<NotShownProps, 'attempt' | 'onListed'> {
  readonly watch: string;
}

function Followed({ watch, ...retry }: FollowedProps) {
  const { options } = useRoute();
  const query = useQuery(options.get('filter') ?? '');
  const { data, error } = useWatches();
  const facts = data?.watches.find(({ name }) => name === watch);
  const [searched, setSearched] = useState<readonly string[]>();
  const source = useSource(watch, query, facts, data !== undefined || error !== '', {
    sort: parseSort(options.get('sort')),
    prefix: options.get('prefix') ?? '',
    whole: options.has('keys'),
    searched,
  });
  if (!source) return <h2>{watch}</h2>;
  return <Known watch={watch} facts={facts} source={source} onSearched={setSearched} listed={data && facts !== undefined} {...retry} />;
}

const everything: Query = [];

// A filter with a mistake, of which the field tells, selects everything.
function useQuery(filter: string): Query {
  return useMemo(() => {
    const query = parseQuery(filter);
    return isMistake(query) ? everything : query;
  }, [filter]);
}

interface Props {
  readonly watch: string;
  /** undefined if the gateway does not list it, or not yet. */
  readonly facts: Watch | undefined;
  readonly source: Source;
  /** Is told of the columns in which texts are searched for, once they are known. */
  readonly onSearched: (columns: readonly string[]) => void;
}

function Known({ listed, attempt, onListed, ...props }: Props & Omit<NotShownProps, 'error'>) {
  const { error, state, revision } = useView(props.source);
  const empty = state === 'closed' && revision === '';
  if (error instanceof RefusedError && (isRefused(error) || empty))
    return <NotShown watch={props.watch} listed={listed} error={error} attempt={attempt} onListed={onListed} />;
  return <Resources {...props} />;
}

type Seen = Pick<View, 'error' | 'state' | 'revision'>;

function useView({ store, window }: Source): Seen {
  const live: { readonly view: Seen; subscribe(run: () => void): () => void } = window ?? store!;
  const seen = useRef<Seen>(live.view);
  return useSyncExternalStore(
    useCallback((changed) => live.subscribe(changed), [live]),
    () => {
      const { error, state, revision } = live.view;
      const empty = revision === '';
      const before = seen.current;
      if (before.error === error && before.state === state && (before.revision === '') === empty) return before;
      seen.current = live.view;
      return live.view;
    },
  );
}

// Nothing that was loaded before may be shown any more.
const isRefused = ({ status }: RefusedError) => status === 401 || status === 403 || status === 404;

interface NotShownProps {
  readonly watch: string;
  /** Whether the gateway lists the watch; undefined while that is not known. */
  readonly listed: boolean | undefined;
  readonly error: RefusedError;
  /** How often it was tried again before. */
  readonly attempt: number;
  readonly onListed: () => void;
}

// At once if the watch was not listed meanwhile. Otherwise the list may be older than the
// refusal, or too rare to show that the watch was gone, or lists what is refused.
function useRetry({ listed, attempt, onListed }: Omit<NotShownProps, 'watch' | 'error'>) {
  const missed = useRef(false);
  useEffect(() => {
    if (listed === false) missed.current = true;
    if (!listed) return;
    const timer = setTimeout(onListed, missed.current ? 0 : Math.min(1000 * 2 ** attempt, 30_000));
    return () => clearTimeout(timer);
  }, [listed, attempt, onListed]);
}

// Of the name that is shown, which need not be that of a watch.
const longest = 100;

function NotShown({ watch, error: { status, problem }, ...retry }: NotShownProps) {
  useRetry(retry);
  return (
    <div className="card not-shown">
      {status === 401 && (
        <>
          <h2>You must sign in to see “{watch}”</h2>
          <div className="bar">
            <SignIn />
          </div>
        </>
      )}
      {status === 403 && (
        <>
          <h2>You may not see “{watch}”</h2>
          <p>{problem ? `The gateway says: ${problem.detail}.` : 'Your access was revoked while this page was open.'}</p>
        </>
      )}
      {status === 404 && (
        <>
          <h2>There is no watch “{watch}”</h2>
          <p>The gateway does not serve it.</p>
        </>
      )}
      {![401, 403, 404].includes(status) && (
        <>
          <h2>“{watch.slice(0, longest)}” cannot be shown</h2>
          <p>The gateway says: {problem?.detail ?? `status ${status}`}.</p>
        </>
      )}
      <p>
        <a href={href('watches')}>The list of watches</a> has those that you can see.
      </p>
    </div>
  );
}

// A table without rows has no columns yet, and needs none to find that there are still no rows.
function useSearched(model: TableModel, { shown, fields }: Columns, onSearched: Props['onSearched']): void {
  const ready = useStatus(model, ({ revision, total }) => revision !== '' && (total === 0 || fields.length > 0));
  const columns = JSON.stringify(searchedIn(shown));
  useEffect(() => {
    if (ready) onSearched(JSON.parse(columns));
  }, [ready, columns, onSearched]);
}

function Resources({ watch, facts, source, onSearched }: Props) {
  const { options } = useRoute();
  const filter = options.get('filter') ?? '';
  const prefix = options.get('prefix') ?? '';
  const showsKeys = options.has('keys');
  const wanted = parseSort(options.get('sort'));
  const model = useTableModel(source, prefix);
  const [width, setWidth] = useState(Infinity);
  const columns = useColumns(model, options.get('columns'), width);
  useSearched(model, columns, onSearched);
  const opened = openedKey(options);
  const writable = facts?.writable ?? false;
  useFreshness(watch, facts, model);
  useOpenTable(watch, model);

  const [share, setShare] = useShare();
  const [dialog, setDialog] = useState<Dialog>();
  const keys = useRef<(event: KeyboardEvent) => void>(null);
  const isOpen = opened !== undefined;
  const moved = useRef(false);
  const open = useCallback(
    (key: string) => {
      moved.current = false;
      openKey(key, !isOpen);
    },
    [isOpen],
  );
  const move = useCallback((key: string) => {
    moved.current = true;
    openKey(key, false);
  }, []);
  const close = useCallback(() => {
    closeKey();
    document.querySelector<HTMLElement>('[data-testid=resources]')?.focus({ preventScroll: true });
  }, []);
  return (
    <div className="resources">
      <Summary name={watch} watch={facts} model={model} />
      <div className="bar">
        {prefix !== '' && (
          <button type="button" className="prefix" title="Show all keys" onClick={() => setOptions({ prefix: undefined })}>
            <KeyText text={prefix} /> ✕
          </button>
        )}
        <FilterField
          filter={filter}
          model={model}
          source={source}
          columns={columns}
          size={facts?.partial ? undefined : (facts?.count ?? 0)}
        />
        <button type="button" aria-pressed={showsKeys} onClick={() => setOptions({ keys: showsKeys ? undefined : '' })}>
          Keys
        </button>
        <ColumnMenu columns={columns} />
        <ViewMenu watch={watch} />
        <PauseButtons model={model} />
        {writable && (
          <button type="button" className="primary push" onClick={() => setDialog({ kind: 'edit', resource: undefined })}>
            New resource
          </button>
        )}
      </div>
      {source.tooMany > 0 && source.sort.column !== wanted.column && (
        <p className="soft">
          Sorted by key: {count(source.tooMany)} resources are too many to be sorted by {column(wanted.column).title} in this page.
        </p>
      )}
      <Tiles watch={watch} model={model} source={source} filter={filter} prefix={prefix} columns={columns.shown} />
      <div className="workspace" data-opened={isOpen || undefined} style={{ '--share': `${share}%` } as CSSProperties}>
        {showsKeys && (source.store || source.tooMany > 0) && (
          <KeyPanel
            store={source.store}
            tooMany={source.tooMany}
            prefix={prefix}
            onChoose={(prefix) => setOptions({ prefix: prefix || undefined })}
            onClose={() => setOptions({ keys: undefined })}
          />
        )}
        <Table
          watch={watch}
          model={model}
          columns={columns.shown}
          sort={source.sort}
          opened={opened}
          onOpen={open}
          onMove={move}
          onClose={close}
          keys={keys}
          onWidth={setWidth}
        />
        {isOpen && <Splitter share={share} onChange={setShare} />}
        {isOpen && (
          <Detail
            key={opened}
            watch={watch}
            model={model}
            rowKey={opened}
            partial={source.cel !== ''}
            onClose={close}
            moved={moved.current}
            onKeyDown={(event) => keys.current?.(event)}
            onDialog={writable ? setDialog : undefined}
          />
        )}
      </div>
      {dialog?.kind === 'edit' && (
        <Boundary>
          <EditorDialog watch={watch} resource={dialog.resource} onClose={() => setDialog(undefined)} />
        </Boundary>
      )}
      {dialog?.kind === 'delete' && <DeleteDialog watch={watch} resource={dialog.resource} onClose={() => setDialog(undefined)} />}
    </div>
  );
}
