// Prints how much the client adds to a page, bundled, minified and compressed, and
// fails if that is more than promised. It measures a page that uses everything, and
// leaves React out. The promises are a table in the README: --update writes it.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const core = `export { watch, RefusedError, NotAStreamError } from './index.js'`;

const budgets = [
  { name: 'core', limit: 6_000, code: core },
  { name: 'everything but React', limit: 6_500, code: `export * from './index.js'` },
  {
    name: 'core and useWatch',
    limit: 7_000,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export * from './react.js'`,
  },
  {
    name: 'core and authenticated',
    limit: 8_000,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export * from './auth.js'`,
  },
  {
    name: 'core and reportDelivery',
    limit: 6_700,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export * from './delivery.js'`,
  },
  {
    name: 'core and watchShared',
    limit: 13_000,
    code: `export { RefusedError, NotAStreamError } from './index.js'; export { watchShared } from './shared.js'`,
  },
  { name: 'the worker that tabs share', limit: 11_000, code: `export { serveTabs } from './shared.js'` },
  ...beside('digits', 500),
  ...beside('http', 1_300),
  ...beside('log', 450),
  ...beside('observe', 1_100),
  ...beside('optimistic', 1_700),
  ...beside('pool', 400),
  ...beside('query', 1_300),
  ...beside('validate', 850),
];

// What an entry point adds to a page that has the core.
function beside(entry, limit) {
  return [{ name: `what ${entry} adds`, limit, code: `${core}; export * from './${entry}.js'`, without: core }];
}

const readme = new URL('../README.md', import.meta.url);
const [before, table, after] = readFileSync(readme, 'utf8').split(/(?<=<!-- sizes -->\n)|(?=<!-- \/sizes -->)/);
const expected = `| | kB, at most |\n|---|--:|\n${budgets.map(({ name, limit }) => `| ${name} | ${(limit / 1_000).toFixed(2)} |\n`).join('')}`;
if (process.argv.includes('--update')) writeFileSync(readme, before + expected + after);
else if (table !== expected) {
  console.error('the sizes in README.md are not those that are promised here: npm run size -- --update');
  process.exitCode = 1;
}

const dist = fileURLToPath(new URL('../dist', import.meta.url));

for (const { name, limit, code, without } of budgets) {
  const size = (await gzipped(code)) - (without ? await gzipped(without) : 0);
  console.log(`${name}: ${size} B gzip, of ${limit}`);
  if (size > limit) {
    console.error(`${name} is ${size - limit} B larger than promised`);
    process.exitCode = 1;
  }
}

async function gzipped(code) {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: dist },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    external: ['react'],
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}
