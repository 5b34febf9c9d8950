import { isObject, numberOf, textOf } from './json.js';
import { identity } from './replica.js';

const ROWS_SHOWN = 500; // more are counted, and found with the filter
const COLUMNS_SHOWN = 24;

const byText = new Intl.Collator('en', { numeric: true }).compare;

// Draws resources into a <table>: a column for the key, the revision, and each
// top-level field of the values ('.name'), or one for values without fields ('.').
//
// Rows and cells are kept from one drawing to the next, so that what changed can
// be seen, and a selection or the focus stays. Text enters by textContent alone.
export class Table {
  rows = new Map();   // identity → {row, tr}, as drawn
  columns = [];
  head = '';          // of what the header was made
  sort = { column: 'key', down: false };
  onsort = () => {};
  onchoose = null;    // given the resource of a key; null: keys are plain text

  constructor(head, body) {
    this.headRow = head;
    this.body = body;
    // So that a row that is moved does not flash again.
    body.addEventListener('animationend', ({ target }) => {
      target.classList.remove('new');
      delete target.dataset.flash;
    });
  }

  // Draws the resources that match, and returns how many do. fresh: the resources
  // are newer than those drawn before, so that what differs is a change.
  draw(resources, wanted, fresh) {
    const columns = columnsOf(resources);
    const same = String(columns) === String(this.columns);
    this.columns = columns;
    this.drawHead();
    const found = this.inOrder(matching(resources, wanted));
    this.drawRows(found.slice(0, ROWS_SHOWN), same, fresh && this.rows.size > 0);
    return { found: found.length, drawn: this.rows.size };
  }

  // Forgets how rows were drawn: the next drawing fills every cell.
  forget() {
    this.columns = [];
  }

  inOrder(resources) {
    const { column, down } = this.sort;
    const sign = down ? -1 : 1;
    return resources.toSorted((a, b) =>
      sign * compare(contentOf(a, column), contentOf(b, column)) || byText(a.key, b.key));
  }

  drawRows(resources, same, flash) {
    const before = this.rows;
    this.rows = new Map();
    for (const row of resources) {
      const id = identity(row);
      const old = before.get(id);
      const tr = old?.tr ?? newRow(flash);
      if (!same || old?.row !== row) this.fill(tr, row, flash && same && Boolean(old));
      this.rows.set(id, { row, tr });
    }
    place(this.body, [...this.rows.values()].map(({ tr }) => tr));
  }

  fill(tr, row, flash) {
    while (tr.children.length > this.columns.length) tr.lastElementChild.remove();
    this.columns.forEach((column, i) => {
      const cell = tr.children[i] ?? tr.appendChild(document.createElement(i ? 'td' : 'th'));
      if (i === 0) this.fillKey(cell, row);
      else fillCell(cell, contentOf(row, column), column === 'revision', flash);
    });
  }

  fillKey(th, row) {
    th.scope = 'row';
    const text = row.key + (row.key_encoding ? ` (${row.key_encoding})` : '');
    if (!this.onchoose) {
      th.textContent = text;
      return;
    }
    const button = th.querySelector('button') ?? document.createElement('button');
    Object.assign(button, { type: 'button', textContent: text, onclick: () => this.onchoose(row) });
    if (button.parentNode !== th) th.replaceChildren(button);
  }

  drawHead() {
    const head = JSON.stringify([this.columns, this.sort]);
    if (head === this.head) return;
    this.head = head;
    const focused = this.headRow.contains(document.activeElement) ? document.activeElement.dataset.column : null;
    this.headRow.replaceChildren(...this.columns.map((c) => this.headCell(c)));
    if (focused) [...this.headRow.querySelectorAll('button')].find((b) => b.dataset.column === focused)?.focus();
  }

  headCell(column) {
    const th = document.createElement('th');
    th.scope = 'col';
    const down = column === this.sort.column && !this.sort.down;
    if (column === this.sort.column) th.setAttribute('aria-sort', this.sort.down ? 'descending' : 'ascending');
    const button = document.createElement('button');
    button.dataset.column = column;
    Object.assign(button, {
      type: 'button', textContent: column === '.' ? 'value' : column.replace(/^\./, ''),
      onclick: () => { this.sort = { column, down }; this.onsort(); },
    });
    th.append(button);
    return th;
  }
}

function matching(resources, wanted) {
  if (!wanted) return resources;
  return resources.filter((r) => (r.search ??= `${r.key} ${textOf(r.value)}`.toLowerCase()).includes(wanted));
}

function columnsOf(resources) {
  const names = new Set();
  for (const { value } of resources) {
    for (const name of isObject(value) ? Object.keys(value) : ['']) names.add(name);
    if (names.size >= COLUMNS_SHOWN) break;
  }
  return ['key', 'revision', ...[...names].slice(0, COLUMNS_SHOWN).map((n) => `.${n}`)];
}

function contentOf(row, column) {
  if (!column.startsWith('.')) return row[column];
  const { value } = row;
  if (!isObject(value)) return column === '.' ? value : undefined;
  const name = column.slice(1);
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

// Numbers by size, everything else as text, in which numbers count by size too.
function compare(a, b) {
  const difference = numberOf(a) - numberOf(b);
  return Number.isNaN(difference) ? byText(textOf(a), textOf(b)) : difference;
}

function newRow(flash) {
  const tr = document.createElement('tr');
  tr.classList.toggle('new', flash);
  return tr;
}

function fillCell(td, content, isNumber, flash) {
  const text = textOf(content);
  td.classList.toggle('number', isNumber || !Number.isNaN(numberOf(content)));
  if (td.textContent === text) return;
  td.textContent = text;
  td.title = text.length > 40 ? text : '';
  // Two names for one animation: taking the other one starts it again.
  if (flash) td.dataset.flash = td.dataset.flash === 'a' ? 'b' : 'a';
}

// Puts the rows in order and moves only those that are not in their place.
function place(body, wanted) {
  const keep = new Set(wanted);
  for (const tr of [...body.children]) if (!keep.has(tr)) tr.remove();
  let at = body.firstElementChild;
  for (const tr of wanted) {
    if (tr === at) at = at.nextElementSibling;
    else if (tr.isConnected && body.moveBefore) body.moveBefore(tr, at); // keeps the focus
    else body.insertBefore(tr, at);
  }
}
