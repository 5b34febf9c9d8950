// What a person must know before trusting the table.

const clock = (ms) => new Date(ms).toLocaleTimeString();

const lasting = (ms) =>
  ms < 90_000 ? `${Math.max(0, Math.round(ms / 1000))} s`
    : ms < 5_400_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;

// Returns {level, text}: 'bad' if what is shown may be wrong, 'wait' if it is about
// to be replaced, '' if it is what the upstream has. known is the watch as the list
// has it; silence is what the last look at the list failed with.
export function warningOf(follower, known, listed, silence) {
  if (!follower) return silence ? bad(silence) : fine;
  return connectionWarning(follower, known, listed, silence) ?? upstreamWarning(follower.replica) ?? fine;
}

const fine = { level: '', text: '' };
const bad = (text) => ({ level: 'bad', text });
const wait = (text) => ({ level: 'wait', text });

function connectionWarning({ watch, connected, goodbye, lostAt, freshAt, replica }, known, listed, silence) {
  const old = replica.complete ? ` What is shown is from ${clock(freshAt)}.` : '';
  if (!navigator.onLine) return bad(`This device is offline.${old}`);
  if (!connected && listed && !known && !silence) return bad(`There is no watch named ${watch} here.${old}`);
  if (!connected && goodbye) return wait(`The server ended this stream (${goodbye}). Coming back…${old}`);
  if (!connected && lostAt) return bad(`No connection since ${clock(lostAt)}. Trying again…${old}`);
  if (!connected) return wait('Connecting…');
  return silence ? bad(silence + old) : null;
}

function upstreamWarning({ freshness, loading, complete }) {
  const why = freshness?.reason ? `: ${freshness.reason}` : '';
  const since = freshness?.since ? `, last in sync ${lasting(Date.now() - Date.parse(freshness.since))} ago` : '';
  switch (freshness?.state) {
    case 'stale':
      return bad(`The upstream is lost${since}${why}.${complete ? ' What is shown may be out of date.' : ''}`);
    case 'resyncing':
      return wait(`Resynchronising with the upstream${since}${why}.`);
    case 'priming':
      return wait(`Waiting for the first complete snapshot of the upstream${why}.`);
  }
  if (!loading) return null;
  return wait(complete ? `Now ${loading}. What is shown is the state before.` : `Now ${loading}…`);
}
