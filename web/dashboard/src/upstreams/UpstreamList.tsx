import { Age } from '../app/Age';
import { Figure } from '../app/Figure';
import { useNarrow } from '../app/narrow';
import { href } from '../app/route';
import type { Watch, WatchUpstream } from '../gateway/contract';
import { ValueText } from '../text/KeyText';
import { count } from '../text/number';
import { Attempts } from './Attempts';
import { resyncs } from './incidents';

type Counts = Readonly<Record<string, number>>;

interface Line {
  readonly watch: Watch;
  readonly history: WatchUpstream | undefined;
}

/** Shows the connection of each watch to its upstream, those that are down first. */
export function UpstreamList({ watches, histories }: { watches: readonly Watch[]; histories: readonly WatchUpstream[] }) {
  const narrow = useNarrow();
  const byWatch = new Map(histories.map((history) => [history.watch, history]));
  const lines = watches
    .map((watch) => ({ watch, history: byWatch.get(watch.name) }))
    .sort((a, b) => Number(a.watch.upstream.connected) - Number(b.watch.upstream.connected));
  return (
    <section aria-labelledby="connections">
      <h3 id="connections">Connections</h3>
      {narrow ? <Cards lines={lines} /> : <Table lines={lines} />}
    </section>
  );
}

/** Returns the sum over all reasons. */
export const total = (counts: Counts): number => Object.values(counts).reduce((all, n) => all + n, 0);

function Table({ lines }: { lines: readonly Line[] }) {
  return (
    <div className="card scroll">
      <table className="plain upstreams" aria-labelledby="connections">
        <thead>
          <tr>
            <th scope="col">Watch</th>
            <th scope="col">Upstream</th>
            <th scope="col">Reconnects</th>
            <th scope="col">Resyncs</th>
            <th scope="col">Last error</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <Row key={line.watch.name} line={line} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ line: { watch, history } }: { line: Line }) {
  return (
    <tr>
      <th scope="row">
        <Name watch={watch} />
      </th>
      <td>
        <Connection watch={watch} />
      </td>
      <td>
        <ByReason counts={history?.reconnects} />
      </td>
      <td>
        <ByReason counts={history && resyncs(history.resyncs)} />
      </td>
      <td>
        <ErrorText watch={watch} />
      </td>
    </tr>
  );
}

function Cards({ lines }: { lines: readonly Line[] }) {
  return (
    <ul className="cards" aria-labelledby="connections">
      {lines.map(({ watch, history }) => (
        <li key={watch.name} className="card">
          <div className="head">
            <Name watch={watch} /> <Connection watch={watch} />
          </div>
          <dl>
            <Figure name="Reconnects" wide>
              <ByReason counts={history?.reconnects} />
            </Figure>
            <Figure name="Resyncs" wide>
              <ByReason counts={history && resyncs(history.resyncs)} />
            </Figure>
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
