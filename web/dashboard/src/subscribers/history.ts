import type { ListWatchesResponse, Subscribers } from '@watchtide/protocol';
import type { Earlier } from '../charts/earlier';
import { Instances } from '../charts/instances';
import { Samples } from '../charts/samples';
import type { Answer } from '../gateway/answer';

// Kept for as long as the dashboard is open.
const subscribers = new Instances(() => new Samples());
const lags = new Map<string, Instances<Samples>>();

/** Returns the number of subscribers of each watch over time, at the replica that answered last. */
export function subscribersOf({ data, at }: Answer<ListWatchesResponse>): Samples {
  if (data) subscribers.answered(data.instance).note(new Map(data.watches.map((watch) => [watch.name, watch.subscribers])), at);
  return subscribers.current;
}

/** Fills the numbers of subscribers, and the lags, with what was recorded before the page was opened; for useEarlier. */
export function fillSubscribers(earlier: Earlier): void {
  const of = subscribers.of(earlier.instance);
  if (of) earlier.fill('subscribers', of);
  for (const watch of ['', ...earlier.names])
    samplesOf(watch)
      .of(earlier.instance)
      ?.fill(new Map([[highest, earlier.of(watch, 'lag')]]));
}

/** The name of the samples of lagsOf. */
export const highest = 'highest lag';

/** Returns the highest lag of the subscribers of one watch, or of all (''), over time, at the replica that answered last. */
export function lagsOf(watch: string, { data, at }: Answer<Subscribers>): Samples {
  const samples = samplesOf(watch);
  if (data) samples.answered(data.instance).note(new Map([[highest, data.lag.max]]), at);
  return samples.current;
}

function samplesOf(watch: string): Instances<Samples> {
  const samples = lags.get(watch) ?? new Instances(() => new Samples());
  lags.set(watch, samples);
  return samples;
}
