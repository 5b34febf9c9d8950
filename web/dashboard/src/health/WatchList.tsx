import { Age } from '../app/Age';
import { Figure } from '../app/Figure';
import { useNarrow } from '../app/narrow';
import { href } from '../app/route';
import type { Watch, WatchUpstream } from '../gateway/contract';
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
  const narrow = useNarrow();
  const byWatch = new Map(histories.map((history) => [history.watch, history]));
  const lines = byNeed(watches).map((watch) => ({ watch, history: byWatch.get(watch.name) }));
  return (
    <section aria-labelledby="connections">
      <h3 id="connections">Watches and their upstreams</h3>
      {narrow ? <Cards lines={lines} counted={counted} /> : <Table lines={lines} counted={counted} />}
    </section>
  );
}

/** Returns the sum over all reasons. */
export const total = (counts: Counts): number => Object.values(counts).reduce((all, n) => all + n, 0);

interface Lines {
  readonly lines: readonly Line[];
  readonly counted: boolean;
}

function Table({ lines, counted }: Lines) {
  return (
    <div className="card scroll">
      <table className="plain health" aria-labelledby="connections">
        <thead>
          <tr>
            <th scope="col">Watch</th>
            <th scope="col">Fresh</th>
            <th scope="col">Upstream</th>
            {counted && <th scope="col">Reconnects</th>}
            {counted && <th scope="col">Resyncs</th>}
            <th scope="col">Last error</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <Row key={line.watch.name} line={line} counted={counted} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ line: { watch, history }, counted }: { line: Line; counted: boolean }) {
  return (
    <tr>
      <th scope="row">
        <Name watch={watch} />
      </th>
      <td>
        <span className="stack stated">
          <State watch={watch} />
        </span>
      </td>
      <td>
        <Connection watch={watch} />
      </td>
      {counted && (
        <td>
          <ByReason counts={history?.reconnects} />
        </td>
      )}
      {counted && (
        <td>
          <ByReason counts={history && resyncs(history.resyncs)} />
        </td>
      )}
      <td>
        <ErrorText watch={watch} />
      </td>
    </tr>
  );
}

function Cards({ lines, counted }: Lines) {
  return (
    <ul className="cards" aria-labelledby="connections">
      {lines.map(({ watch, history }) => (
        <li key={watch.name} className="card">
          <div className="head">
            <Name watch={watch} />{' '}
            <span className="stack stated">
              <State watch={watch} />
            </span>
          </div>
          <dl>
            <Figure name="Upstream" wide>
              <Connection watch={watch} />
            </Figure>
            {counted && (
              <Figure name="Reconnects" wide>
                <ByReason counts={history?.reconnects} />
              </Figure>
            )}
            {counted && (
              <Figure name="Resyncs" wide>
                <ByReason counts={history && resyncs(history.resyncs)} />
              </Figure>
            )}
            <Figure name="Last error" wide>
              <ErrorText watch={watch} />
            </Figure>
          </dl>
        </li>
      ))}
    </ul>
  );
}

function Name({ watch: { name, source } }: { watch: Watch }) {
  return (
    <span className="stack">
      <a href={href('watches', name)}>{name}</a> <span className="soft">{source}</span>
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
