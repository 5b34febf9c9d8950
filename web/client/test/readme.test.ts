import { readFileSync } from 'node:fs';
import { transform } from 'esbuild';
import { expect, test } from 'vitest';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const blocks = [...readme.matchAll(/^```jsx?\n(.*?)^```$/gms)].map(([, code]) => code ?? '');

const entries: Record<string, () => Promise<object>> = {
  '@watchtide/client': () => import('../src/index.js'),
  '@watchtide/client/auth': () => import('../src/auth.js'),
  '@watchtide/client/counts': () => import('../src/counts.js'),
  '@watchtide/client/delivery': () => import('../src/delivery.js'),
  '@watchtide/client/digits': () => import('../src/digits.js'),
  '@watchtide/client/http': () => import('../src/http.js'),
  '@watchtide/client/log': () => import('../src/log.js'),
  '@watchtide/client/observe': () => import('../src/observe.js'),
  '@watchtide/client/optimistic': () => import('../src/optimistic.js'),
  '@watchtide/client/pool': () => import('../src/pool.js'),
  '@watchtide/client/query': () => import('../src/query.js'),
  '@watchtide/client/rate': () => import('../src/rate.js'),
  '@watchtide/client/validate': () => import('../src/validate.js'),
  '@watchtide/client/react': () => import('../src/react.js'),
  '@watchtide/client/shared': () => import('../src/shared.js'),
  '@watchtide/client/solid': () => import('../src/solid.js'),
  '@watchtide/client/svelte': () => import('../src/svelte.js'),
  '@watchtide/client/tanstack-db': () => import('../src/tanstack_db.js'),
  '@watchtide/client/tanstack-table': () => import('../src/tanstack_table.js'),
  '@watchtide/client/virtual': () => import('../src/virtual.js'),
  '@watchtide/client/window': () => import('../src/window.js'),
  '@watchtide/client/vue': () => import('../src/vue.js'),
  vue: () => import('vue'),
  '@tanstack/db': () => import('@tanstack/db'),
};

test('the README has code', () => {
  expect(blocks.length).toBeGreaterThan(8);
});

test.each(blocks)('code of the README is code, and imports what there is:\n%s', async (code) => {
  await transform(code, { loader: 'jsx', format: 'esm', target: 'es2022' });
  for (const [, names = '', from = ''] of code.matchAll(/^import \{ (.*?) \} from '(.*?)';$/gm)) {
    const exported = await entries[from]?.();
    for (const name of names.split(', ')) expect(exported, from).toHaveProperty(name);
  }
});
