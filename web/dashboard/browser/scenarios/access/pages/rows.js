const list = document.getElementById('rows');
const shown = new Map(); // by key

/** How many rows were removed. */
globalThis.removed = 0;

/** Shows the text of a row, and touches no other one. */
export function show(key, text) {
  const row = shown.get(key) ?? list.appendChild(document.createElement('li'));
  shown.set(key, row);
  row.textContent = `${key}: ${text}`;
}

export function remove(key) {
  shown.get(key)?.remove();
  if (shown.delete(key)) globalThis.removed++;
}

export const clear = () => [...shown.keys()].forEach(remove);
