import { clear, remove, show } from './rows.js';

/** How many events of each type came. */
globalThis.events = {};

const source = (globalThis.source = new EventSource('/v1/events?watch=services'));

const take = {
  hello() {},
  reset: clear,
  upsert: ({ key, value }) => show(key, value.text),
  delete: ({ key }) => remove(key),
  end_of_snapshot() {},
  bookmark() {},
  status() {},
  goodbye() {},
};

for (const [type, f] of Object.entries(take)) {
  source.addEventListener(type, ({ data }) => {
    globalThis.events[type] = (globalThis.events[type] ?? 0) + 1;
    f(JSON.parse(data));
  });
}
