import { Samples } from '../charts/samples';
import type { Answer } from '../gateway/answer';
import type { ListWatchesResponse, Subscribers } from '../gateway/contract';

// While the page is open, whichever of its pages is shown.
const subscribers = new Samples();
const lags = new Map<string, Samples>();

/** How many subscribers each watch had. */
export function subscribersOf({ data, at }: Answer<ListWatchesResponse>): Samples {
  if (data) subscribers.note(new Map(data.watches.map((watch) => [watch.name, watch.subscribers])), at);
  return subscribers;
}

/** The name under which lagsOf has what it has. */
export const highest = 'highest lag';

/** The highest lag of the subscribers of one watch, or of all (''). */
export function lagsOf(watch: string, { data, at }: Answer<Subscribers>): Samples {
  const samples = lags.get(watch) ?? new Samples();
  lags.set(watch, samples);
  if (data) samples.note(new Map([[highest, data.subscribers[0]?.lag ?? 0]]), at); // the first has the most
  return samples;
}
