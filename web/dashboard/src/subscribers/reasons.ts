import type { Departure } from '../gateway/contract';

const meanings: Readonly<Record<Departure['reason'], string>> = {
  client_closed: 'the client hung up',
  write_timeout: 'the client did not read',
  aborted: 'the gateway gave up on it',
  max_age: 'the stream had its greatest age',
  draining: 'the gateway was stopped',
  complete: 'the client wanted the snapshot only',
  watch_removed: 'the watch was removed',
  overloaded: 'the gateway had too much to do',
  token_expired: 'the client’s token had expired',
  revoked: 'the client’s right to it was taken away',
};

/** Why a subscriber left, in words. */
export const meaning = (reason: Departure['reason']): string => meanings[reason];
