import type { Upstream } from '@watchtide/protocol';
import { Age, Until } from '../app/Age';
import { count } from '../text/number';

/** Says since when an upstream is as it is, how often it was tried, and when it is tried again. */
export function Attempts({ upstream: { since, attempts, next_attempt_at: next } }: { upstream: Upstream }) {
  return (
    <>
      {since && (
        <>
          for <Age of={since} />
        </>
      )}
      {attempts > 0 && `, attempt ${count(attempts)}`}
      {next && (
        <>
          , next in <Until of={next} />
        </>
      )}
    </>
  );
}
