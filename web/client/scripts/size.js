// Prints how much the client adds to a page, bundled, minified and compressed, and
// fails if that is more than promised. It measures a page that uses everything, and
// leaves React out.

import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const budgets = [
  { name: 'core', limit: 6_000, code: `export { watch, RefusedError, NotAStreamError } from './index.js'` },
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
];

const dist = fileURLToPath(new URL('../dist', import.meta.url));

for (const { name, limit, code } of budgets) {
  const size = await gzipped(code);
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
