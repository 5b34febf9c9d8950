import type { View } from '@watchtide/client';
import { useNow } from '../app/clock';
import { href } from '../app/route';
import type { Watch } from '../gateway/contract';
import { duration } from '../text/duration';
import { count, rate } from '../text/number';
import type { Look, Sheet } from './sheet';
import { useRate } from './useRate';

/** What there is to say of a watch as a whole. */
export function Summary({ name, watch, view, sheet, look }: { name: string; watch: Watch | undefined; view: View; sheet: Sheet; look: Look }) {
  return (
    <div className="bar summary">
      <h2>{name}</h2>
      <span className="state" data-state={view.state}>{view.state.replace('_', ' ')}</span>
      <Since since={view.since} />
      <dl>
        {watch && <Fact name="source">{watch.source}</Fact>}
        <Fact name="resources">{count(look.total)}</Fact>
        <Fact name="revision">{look.revision || '–'}</Fact>
        <Rate sheet={sheet} />
      </dl>
      <a className="push" href={href('stream', name)}>The raw stream</a>
    </div>
  );
}

function Fact({ name, children }: { name: string; children: string }) {
  return <div><dt>{name}</dt> <dd>{children}</dd></div>;
}

function Since({ since }: { since: number }) {
  const now = useNow();
  return <span className="soft">for <time dateTime={new Date(since).toISOString()}>{duration(Math.max(0, now - since))}</time></span>;
}

function Rate({ sheet }: { sheet: Sheet }) {
  return <Fact name="changes/s">{rate(useRate(sheet))}</Fact>;
}
