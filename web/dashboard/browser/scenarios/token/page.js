import { watch } from '/client/index.js';

let tokens = 0;

/** For each call of getToken, whether the last token had expired. */
globalThis.asked = [];

const tide = watch('/', {
  watches: ['secrets'],
  getToken({ expired }) {
    globalThis.asked.push(expired);
    return `token-${++tokens}`;
  },
});

tide.store('secrets').subscribe(({ state, error, resources }) => {
  document.getElementById('state').textContent = [state, error?.status].join(' ').trim();
  document.getElementById('values').textContent = [...resources.values()].map(({ value }) => value).join(' ');
});
