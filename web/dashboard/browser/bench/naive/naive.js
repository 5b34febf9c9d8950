// The obvious first version: the browser's EventSource, JSON.parse, the rows in an
// array, and the visible ones drawn again in the next frame after a change.

const visible = 40;
const columns = ['name', 'team', 'zone', 'address', 'state', 'cpu', 'memory_mb', 'requests_per_second', 'version', 'updated'];

const gateway = new URLSearchParams(location.search).get('gateway');
const table = document.querySelector('table');
const rows = [];
let complete = false;

const source = new EventSource(`${gateway}/v1/events?watch=services`);

source.addEventListener('reset', () => {
  rows.length = 0;
  complete = false;
});

source.addEventListener('upsert', ({ data }) => {
  const row = JSON.parse(data);
  if (!complete) return void rows.push(row); // nothing is sent twice before the end of the snapshot
  const i = rows.findIndex(({ key }) => key === row.key);
  if (i < 0) rows.push(row);
  else rows[i] = row;
  draw(row.revision);
});

source.addEventListener('delete', ({ data }) => {
  const { key, revision } = JSON.parse(data);
  const i = rows.findIndex((row) => row.key === key);
  if (i >= 0) rows.splice(i, 1);
  draw(revision);
});

source.addEventListener('end_of_snapshot', ({ data }) => {
  complete = true;
  draw(JSON.parse(data).revision);
  requestAnimationFrame(() => setTimeout(() => performance.mark('consistent')));
});

let shown = '0';
let due = false;

function draw(revision) {
  shown = revision;
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    Object.assign(table.dataset, { state: 'in_sync', count: rows.length, revision: shown });
    table.tBodies[0].replaceChildren(...rows.slice(0, visible).map(drawRow));
  });
}

function drawRow({ key, value }) {
  const row = document.createElement('tr');
  row.dataset.key = key;
  for (const text of [key, ...columns.map((column) => value[column])]) row.insertCell().textContent = text;
  return row;
}
