import type { Watch } from '@watchtide/protocol';
import { Age } from '../app/Age';
import { href } from '../app/route';
import { useOperator } from '../gateway/operator';
import { sinceOf } from '../gateway/since';
import { moment } from '../text/moment';
import { count, rate } from '../text/number';
import type { TableModel } from './table';
import { useRate } from './useRate';
import { useStatus, useThrottledStatus } from './useTableModel';

/** Shows a summary of a watch. */
export function Summary({ name, watch, model }: { name: string; watch: Watch | undefined; model: TableModel }) {
  const state = useStatus(model, ({ view }) => view.state);
  const seen = useStatus(model, ({ view }) => view.since);
  const since = sinceOf(watch, state, seen);
  const total = useThrottledStatus(model, ({ total }) => total);
  const revision = useThrottledStatus(model, ({ revision }) => revision);
  const verifiedAt = useThrottledStatus(model, ({ view }) => view.verifiedAt ?? 0);
  const operator = useOperator();
  return (
    <div className="bar resource-summary">
      <h2>{name}</h2>
      <span className="state" data-state={state}>
        {state.replace('_', ' ')}
      </span>
      <span className="soft">
        for <Age of={new Date(since).toISOString()} />
      </span>
      {verifiedAt > 0 && (
        <span className="soft" title="What is shown was what the gateway has: the digests were equal">
          verified at {moment(verifiedAt)}
        </span>
      )}
      <dl>
        {watch && <Fact name="source">{watch.source}</Fact>}
        <Fact name="resources">{count(total)}</Fact>
        <Fact name="revision">{revision || '–'}</Fact>
        <Rate model={model} />
      </dl>
      <span className="links push">
        <a href={href('changes', name)}>Changes</a> {operator && <a href={href('timeline', name)}>Timeline</a>}{' '}
        <a href={href('stream', name)}>Raw stream</a>
      </span>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: string }) {
  return (
    <div>
      <dt>{name}</dt> <dd>{children}</dd>
    </div>
  );
}

function Rate({ model }: { model: TableModel }) {
  return <Fact name="changes/s">{rate(useRate(model))}</Fact>;
}
