import type { Watch } from '@watchtide/protocol';
import { Age } from '../app/Age';
import { ValueText } from '../text/KeyText';
import { visible } from '../text/visible';
import { stateText } from './order';

/** Shows the state of a watch, its start time, and the reason if it is not the upstream's last error. */
export function State({ watch: { state, since, reason, upstream } }: { watch: Watch }) {
  return (
    <>
      <span className="state" data-state={state}>
        {stateText(state)}
      </span>{' '}
      {since && (
        <span className="soft since">
          for <Age of={since} />
        </span>
      )}
      {reason && state !== 'in_sync' && reason !== upstream.last_error && (
        <span className="reason clamped" title={visible(reason)}>
          <ValueText text={reason} />
        </span>
      )}
    </>
  );
}
