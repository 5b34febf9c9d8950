// Prints how much the client adds to a page, bundled, minified and compressed, and
// fails if that is more than promised, or if the table of the README is out of date;
// with --update it writes that table. Libraries such as React are left out.

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const core = `export { watch, RefusedError, NotAStreamError } from './index.js'`;

const budgets = [
  { name: 'core', limit: 12_900, code: core },
  { name: 'all of the main entry point', limit: 13_500, code: `export * from './index.js'` },
  {
    name: 'core and useWatch',
    limit: 13_150,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export { useWatch } from './react.js'`,
  },
  {
    name: 'core and useResource',
    limit: 13_500,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export { useResource } from './react.js'`,
  },
  { name: 'React: all hooks, `hydrating`, alone', limit: 3_100, code: `export * from './react.js'` },
  { name: 'Vue: all of it, alone', limit: 2_500, code: `export * from './vue.js'` },
  { name: 'Svelte: all of it, alone', limit: 2_500, code: `export * from './svelte.js'` },
  { name: 'Solid: all of it, alone', limit: 2_800, code: `export * from './solid.js'` },
  { name: 'TanStack Table: all of it, alone', limit: 500, code: `export * from './tanstack_table.js'` },
  { name: 'TanStack DB: all of it, alone', limit: 1_500, code: `export * from './tanstack_db.js'` },
  {
    name: 'core and authenticated',
    limit: 14_800,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export * from './auth.js'`,
  },
  {
    name: 'core and reportDelivery',
    limit: 13_350,
    code: `export { watch, RefusedError, NotAStreamError } from './index.js'; export * from './delivery.js'`,
  },
  {
    name: 'core and watchShared',
    limit: 21_850,
    code: `export { RefusedError, NotAStreamError } from './index.js'; export { watchShared } from './shared.js'`,
  },
  { name: 'the worker that tabs share', limit: 19_200, code: `export { serveTabs } from './shared.js'` },
  beside('counts', 1_700),
  beside('digits', 600),
  beside('http', 1_300),
  beside('log', 450),
  beside('observe', 1_100),
  beside('optimistic', 1_700),
  beside('pool', 500),
  beside('query', 1_450),
  beside('rate', 800),
  beside('validate', 1_100),
  beside('virtual', 400),
  beside('window', 3_100),
];

// What an entry point adds to a page that has the core.
function beside(entry, limit) {
  return { name: `what ${entry} adds to the core`, limit, code: `${core}; export * from './${entry}.js'`, without: core };
}

const dist = fileURLToPath(new URL('../dist', import.meta.url));
const readme = fileURLToPath(new URL('../README.md', import.meta.url));

const sizes = new Map();
for (const { name, limit, code, without } of budgets) {
  const size = (await gzipped(code)) - (without ? await gzipped(without) : 0);
  sizes.set(name, size);
  console.log(`${name}: ${size} B gzip, of ${limit}`);
  if (size > limit) fail(`${name} is ${size - limit} B larger than promised`);
}
const served = readFileSync(new URL('../../../internal/web/bundle/client.js', import.meta.url));
sizes.set('`client.js` of the gateway', gzipSync(served, { level: 9 }).length);
if (process.argv.includes('--update')) writeTable();
else checkTable();

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}

// The table of the README is between these two lines.
function table() {
  return /(?<=^\| a page that imports \| kB, gzip \|\n\|---\|--:\|\n)(?:\|.*\n)*/m;
}

function writeTable() {
  const rows = [...sizes].map(([name, size]) => `| ${name} | ${(size / 1000).toFixed(1)} |\n`);
  writeFileSync(
    readme,
    readFileSync(readme, 'utf8').replace(table(), () => rows.join('')),
  );
}

// Versions of zlib differ by a few bytes, so the last digit may differ by one.
function checkTable() {
  const rows = table().exec(readFileSync(readme, 'utf8'))[0].trim().split('\n');
  const written = new Map(rows.map((row) => row.split('|').map((cell) => cell.trim())).map(([, name, size]) => [name, Number(size)]));
  for (const name of new Set([...written.keys(), ...sizes.keys()])) {
    if (!(Math.abs(written.get(name) * 1000 - sizes.get(name)) < 150)) {
      fail(`README.md: ${name}: ${written.get(name)} kB, measured ${sizes.get(name)} B: npm run size -- --update`);
    }
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
    packages: 'external',
  });
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}
