import { duration } from '../text/duration';
import { fullMoment } from '../text/moment';
import { useNow } from './clock';

/** The time since a timestamp of the gateway, updated as it passes: `2 min 5 s`. */
export function Age({ of }: { of: string }) {
  return <Distance of={of} in={(then, now) => now - then} />;
}

/** The time until a timestamp of the gateway, updated as it passes. */
export function Until({ of }: { of: string }) {
  return <Distance of={of} in={(then, now) => then - now} />;
}

/** A time of any value, from now: `2 min 5 s ago`, `in 3 d`. */
export function Moment({ of }: { of: string }) {
  const then = Date.parse(of);
  const ms = useNow() - then;
  return (
    <time dateTime={of} title={of}>
      {ms <= -1000 ? `in ${duration(-ms)}` : `${duration(Math.max(0, ms))} ago`}
    </time>
  );
}

function Distance({ of, in: ms }: { of: string; in: (then: number, now: number) => number }) {
  const then = Date.parse(of);
  const now = useNow();
  return (
    <time dateTime={of} title={fullMoment(then)}>
      {duration(Math.max(0, ms(then, now)))}
    </time>
  );
}
