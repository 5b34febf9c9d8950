import type { Watch, WatchUpstream } from '@watchtide/protocol';
import { Age } from '../app/Age';
import { type Column, DataTable } from '../app/DataTable';
import { href } from '../app/route';
import { State } from '../overview/State';
import { ValueText } from '../text/KeyText';
import { count } from '../text/number';
import { Attempts } from './Attempts';
import { byNeed } from './fresh';
import { resyncs } from './incidents';

type Counts = Readonly<Record<string, number>>;

interface Line {
  readonly watch: Watch;
  readonly history: WatchUpstream | undefined;
}

interface Props {
  readonly watches: readonly Watch[];
  readonly histories: readonly WatchUpstream[];
  /** Whether there are counts of reconnects and resyncs, which are for operators. */
  readonly counted: boolean;
}

/** Shows the freshness of each watch and its connection to the upstream, those that need attention first. */
export function WatchList({ watches, histories, counted }: Props) {
  const byWatch = new Map(histories.map((history) => [history.watch, history]));
  const lines = byNeed(watches).map((watch) => ({ watch, history: byWatch.get(watch.name) }));
  return (
    <section aria-labelledby="connections">
      <h3 id="connections">Watches and their upstreams</h3>
      <DataTable
        labelledBy="connections"
        className="health"
        columns={columnsOf(counted)}
        rows={lines}
        keyOf={({ watch }) => watch.name}
        cards
      />
    </section>
  );
}

const columnsOf = (counted: boolean): readonly Column<Line>[] => [
  { title: 'Watch', cell: ({ watch }) => <Name watch={watch} /> },
  { title: 'Fresh', cell: ({ watch }) => <Fresh watch={watch} />, card: 'head' },
  { title: 'Upstream', cell: ({ watch }) => <Connection watch={watch} />, card: 'wide' },
  ...(counted ? counts : []),
  { title: 'Last error', cell: ({ watch }) => <ErrorText watch={watch} />, card: 'wide' },
];

const counts: readonly Column<Line>[] = [
  { title: 'Reconnects', cell: ({ history }) => <ByReason counts={history?.reconnects} />, card: 'wide' },
  { title: 'Resyncs', cell: ({ history }) => <ByReason counts={history && resyncs(history.resyncs)} />, card: 'wide' },
];

/** Returns the sum over all reasons. */
export const total = (counts: Counts): number => Object.values(counts).reduce((all, n) => all + n, 0);

function Name({ watch: { name, source } }: { watch: Watch }) {
  return (
    <span className="stack">
      <a href={href('watches', name)}>{name}</a> <span className="soft">{source}</span>
    </span>
  );
}

function Fresh({ watch }: { watch: Watch }) {
  return (
    <span className="stack stated">
      <State watch={watch} />
    </span>
  );
}

function Connection({ watch: { upstream } }: { watch: Watch }) {
  const { connected } = upstream;
  return (
    <span className="stack">
      <span className="state" data-state={connected ? 'in_sync' : 'offline'}>
        {connected ? 'connected' : 'not connected'}
      </span>
      <span className="soft">
        <Attempts upstream={upstream} />
      </span>
    </span>
  );
}

function ByReason({ counts }: { counts: Counts | undefined }) {
  if (!counts) return <span className="soft">unknown</span>;
  const occurred = Object.entries(counts).filter(([, times]) => times > 0);
  return (
    <span className="stack">
      <span>{count(total(counts))}</span>
      {occurred.length > 0 && <span className="soft">{occurred.map(([reason, times]) => `${reason} ${count(times)}`).join(', ')}</span>}
    </span>
  );
}

function ErrorText({
  watch: {
    upstream: { last_error: error, last_error_at: at },
  },
}: {
  watch: Watch;
}) {
  if (!error) return <span className="soft">none</span>;
  return (
    <span className="stack">
      <ValueText text={error} />{' '}
      {at && (
        <span className="soft">
          <Age of={at} /> ago
        </span>
      )}
    </span>
  );
}
