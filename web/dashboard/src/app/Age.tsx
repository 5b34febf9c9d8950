import { duration } from '../text/duration';
import { useNow } from './clock';

/** The time since a timestamp of the gateway, updated as it passes: `2 min 5 s`. */
export function Age({ of }: { of: string }) {
  const then = Date.parse(of);
  const now = useNow();
  return <time dateTime={of} title={new Date(then).toLocaleString()}>{duration(Math.max(0, now - then))}</time>;
}
