// Verifies that the built files in internal/web/page are up to date.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const committed = fileURLToPath(new URL('../../../internal/web/page', import.meta.url));
const fresh = mkdtempSync(join(tmpdir(), 'page-'));

try {
  await build({ root: fileURLToPath(new URL('..', import.meta.url)), logLevel: 'warn', build: { outDir: fresh, emptyOutDir: true } });
  const stale = differences(committed, fresh);
  for (const name of stale) console.error(`internal/web/page/${name} is not what web/dashboard gives: make dashboard`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} finally {
  rmSync(fresh, { recursive: true });
}

function differences(a, b) {
  const names = new Set([...files(a), ...files(b)]);
  return [...names].filter((name) => content(a, name) !== content(b, name)).sort();
}

function files(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));
}

function content(directory, name) {
  try {
    return readFileSync(join(directory, name), 'latin1');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
