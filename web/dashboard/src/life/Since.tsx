import { moment } from '../text/moment';
import type { Known } from './past';

/** Says since when nothing is missing. */
export function Since({ past: { since, more, dropped, changes, error, loading } }: { past: Known }) {
  if (error) return <p role="alert">The history cannot be read: {error}</p>;
  if (!since) return <p className="soft">{loading ? 'Reading the history…' : ''}</p>;
  return (
    <p className="soft" data-testid="since">
      Nothing is missing after revision {since.revision}
      {since.time && (
        <>
          {' '}
          (<time dateTime={since.time}>{moment(Date.parse(since.time))}</time>)
        </>
      )}
      . {earlier(changes.length, more, dropped)}
    </p>
  );
}

function earlier(changes: number, more: boolean, dropped: boolean): string {
  if (dropped) return 'Older ones are not shown here.';
  if (more) return 'There are older ones.';
  return changes === 0 ? 'There was no change since.' : 'The gateway keeps none from before these.';
}
