import type { Watch } from '@watchtide/protocol';
import { Age } from '../app/Age';
import { href } from '../app/route';
import { Attempts } from '../health/Attempts';
import { ValueText } from '../text/KeyText';
import { visible } from '../text/visible';

/** Shows whether the upstream of a watch is connected, and its last error. */
export function LastError({ watch: { name, upstream } }: { watch: Watch }) {
  const { connected, last_error: error, last_error_at: at } = upstream;
  if (connected && !error) return <span className="soft">none</span>;
  return (
    <span className="last-error">
      {!connected && (
        <strong>
          not connected <Attempts upstream={upstream} />
        </strong>
      )}
      {error && (
        <a className="error clamped" href={href('health', '', new URLSearchParams({ watch: name }))} title={visible(error)}>
          <ValueText text={error} />
        </a>
      )}
      {error && at && (
        <span className="soft">
          <Age of={at} /> ago
        </span>
      )}
    </span>
  );
}
