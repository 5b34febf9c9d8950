// Follows the watch as the naive page does, and hands on what changed once per frame.

const gateway = new URLSearchParams(location.search).get('gateway');

/** The columns of the page's table. */
export const columns = ['key', 'name', 'team', 'zone', 'address', 'state', 'cpu', 'memory_mb', 'requests_per_second', 'version', 'updated'];

/** Returns what a cell of a column shows. */
export const cell = (row, column) => (column === 'key' ? row.key : row.value[column]);

/**
 * Calls all(rows) with the snapshot, and then changed({ upserts, deletes }) at most once per
 * frame. Both return a promise or nothing; when it is settled, the table has been given the rows.
 */
export function follow({ all, changed }) {
  const marks = document.querySelector('[data-testid=resources]');
  let snapshot = new Map();
  let complete = false;
  let batch = empty();
  let revision = '0';
  let count = 0;
  let due = false;
  const keys = new Set();

  function show() {
    Object.assign(marks.dataset, { state: 'in_sync', count, revision });
  }

  function schedule() {
    if (due) return;
    due = true;
    requestAnimationFrame(async () => {
      due = false;
      const now = batch;
      const at = revision;
      batch = empty();
      await changed({ upserts: [...now.upserts.values()], deletes: [...now.deletes] });
      count = keys.size;
      Object.assign(marks.dataset, { count, revision: at });
    });
  }

  const source = new EventSource(`${gateway}/v1/events?watch=services`);
  source.addEventListener('reset', () => {
    snapshot = new Map();
    keys.clear();
    complete = false;
  });
  source.addEventListener('upsert', ({ data }) => {
    const row = JSON.parse(data);
    if (!complete) return void snapshot.set(row.key, row);
    keys.add(row.key);
    batch.upserts.set(row.key, row);
    batch.deletes.delete(row.key);
    revision = row.revision;
    schedule();
  });
  source.addEventListener('delete', ({ data }) => {
    const { key, revision: at } = JSON.parse(data);
    keys.delete(key);
    batch.upserts.delete(key);
    batch.deletes.add(key);
    revision = at;
    schedule();
  });
  source.addEventListener('end_of_snapshot', async ({ data }) => {
    complete = true;
    revision = JSON.parse(data).revision;
    for (const key of snapshot.keys()) keys.add(key);
    count = keys.size;
    await all([...snapshot.values()]);
    show();
    requestAnimationFrame(() => setTimeout(() => performance.mark('consistent')));
  });
}

const empty = () => ({ upserts: new Map(), deletes: new Set() });
