import { duration } from '../text/duration';
import { useNow } from './clock';

/** How long ago a time of the gateway was: `2 min 5 s`; it ticks. */
export function Age({ of }: { of: string }) {
  const then = Date.parse(of);
  const now = useNow();
  return <time dateTime={of} title={new Date(then).toLocaleString()}>{duration(Math.max(0, now - then))}</time>;
}
