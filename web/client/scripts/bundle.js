// Writes internal/web/bundle, which the gateway serves: client.js, one module made of all entry
// points of the built package that need no other package, its types, client.d.ts, and the
// README.md of the package, a page of the manual.
// With --check it only verifies that they are up to date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { declarations } from './declarations.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const target = fileURLToPath(new URL('../../../internal/web/bundle/', import.meta.url));
const { name, license, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const banner = `/*! ${name}, ${license} */\n`;

const entries = await standalone();
const files = {
  'client.js': banner + (await bundle(entries)),
  'client.d.ts': banner + types(entries),
  'README.md': readFileSync(join(root, 'README.md'), 'utf8'),
};
if (process.argv.includes('--check')) check();
else write();

/** Returns the entry points that import nothing but the package's own files. */
async function standalone() {
  const found = [];
  for (const entry of Object.values(exports).filter((entry) => typeof entry !== 'string')) {
    const { metafile } = await esbuild({ entryPoints: [join(root, entry.default)], metafile: true });
    const imports = Object.values(metafile.outputs).flatMap(({ imports }) => imports);
    const typed = /from '[^.]/.test(readFileSync(join(root, entry.types), 'utf8')); // by another package
    if (imports.length === 0 && !typed) found.push({ ...entry, exports: exportsOf(metafile) });
  }
  return found;
}

async function bundle(entries) {
  const contents = entries.map(({ default: path }) => `export * from '${path}';`).join('\n');
  const { outputFiles, metafile } = await esbuild({ stdin: { contents, resolveDir: root }, minify: true, metafile: true });
  const lost = entries.flatMap(({ exports }) => exports).filter((name) => !exportsOf(metafile).includes(name));
  if (lost.length > 0) throw new Error(`two entry points export different things as ${lost}`);
  return outputFiles[0].text;
}

function exportsOf({ outputs }) {
  return Object.values(outputs).flatMap(({ exports }) => exports);
}

function esbuild(options) {
  return build({ bundle: true, write: false, format: 'esm', target: 'es2022', packages: 'external', logLevel: 'error', ...options });
}

function types(entries) {
  return declarations(entries.map(({ types }) => join(root, types)));
}

function write() {
  mkdirSync(target, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(target, name), text);
    console.log(`internal/web/bundle/${name}: ${text.length} B, ${gzipSync(text, { level: 9 }).length} B gzip`);
  }
}

function check() {
  for (const [name, text] of Object.entries(files)) {
    if (read(name) === text) continue;
    console.error(`internal/web/bundle/${name} is not what web/client gives: npm run bundle in web/client, or make bundle`);
    process.exitCode = 1;
  }
}

function read(name) {
  try {
    return readFileSync(join(target, name), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
