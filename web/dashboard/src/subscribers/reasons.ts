import type { Departure } from '@watchtide/protocol';

const meanings: Readonly<Record<Departure['reason'], string>> = {
  client_closed: 'the client disconnected',
  write_timeout: 'the client did not read its stream',
  aborted: 'the gateway aborted the stream',
  max_age: 'the stream reached its maximum age',
  draining: 'the gateway was shutting down',
  complete: 'the client requested only the snapshot',
  watch_removed: 'the watch was removed',
  watch_replaced: 'the configuration of the watch was replaced',
  overloaded: 'the gateway was overloaded',
  token_expired: 'the client’s token expired',
  revoked: 'the client’s access was revoked',
};

/** Explains why a subscriber disconnected. */
export const meaning = (reason: Departure['reason']): string => meanings[reason];
