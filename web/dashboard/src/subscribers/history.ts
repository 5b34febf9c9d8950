import type { Earlier } from '../charts/earlier';
import { Samples } from '../charts/samples';
import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse, Subscribers } from '../gateway/contract';

// Kept for as long as the dashboard is open.
const subscribers = new Samples();
const lags = new Map<string, Samples>();

/** Returns the number of subscribers of each watch over time. */
export function subscribersOf({ data, at }: Answer<ListWatchesResponse>): Samples {
  if (data) subscribers.note(new Map(data.watches.map((watch) => [watch.name, watch.subscribers])), at);
  return subscribers;
}

/** Fills the numbers of subscribers, and the lags, with what was recorded before the page was opened; for useEarlier. */
export function fillSubscribers(earlier: Earlier): void {
  earlier.fill('subscribers', subscribers);
  for (const watch of ['', ...earlier.names]) samplesOf(watch).fill(new Map([[highest, earlier.of(watch, 'lag')]]));
}

/** The name of the samples of lagsOf. */
export const highest = 'highest lag';

/** Returns the highest lag of the subscribers of one watch, or of all (''), over time. */
export function lagsOf(watch: string, { data, at }: Answer<Subscribers>): Samples {
  const samples = samplesOf(watch);
  if (data) samples.note(new Map([[highest, data.lag.max]]), at);
  return samples;
}

function samplesOf(watch: string): Samples {
  const samples = lags.get(watch) ?? new Samples();
  lags.set(watch, samples);
  return samples;
}
