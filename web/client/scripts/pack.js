// Packs the package, or takes the packed one that is named, and checks it as those who
// install it would: publint and attw find nothing, every entry point resolves with its
// types in an empty project, and it holds nothing that is not needed.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'watchtide-client-'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const entries = Object.values(manifest.exports).filter((entry) => typeof entry !== 'string');

try {
  check(process.argv[2] ? resolve(process.argv[2]) : pack());
} finally {
  rmSync(project, { recursive: true, force: true });
}

function pack() {
  const packed = JSON.parse(run(root, 'npm', 'pack', '--json', '--pack-destination', project));
  // A list of the packages, or a map by name, depending on the version of npm.
  const [{ filename }] = Array.isArray(packed) ? packed : Object.values(packed);
  return join(project, filename);
}

function check(tarball) {
  run(project, 'tar', '-xzf', tarball);
  const content = join(project, 'package');
  const files = readdirSync(content, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name).slice(content.length + 1));
  checkFiles(files);
  for (const file of files) checkFile(file, readFileSync(join(content, file), 'utf8'));
  lint(tarball);
  use(tarball);
  console.log(`${tarball.split('/').pop()}: ${files.length} files; publint and attw find nothing; installed and used in an empty project`);
}

function checkFiles(files) {
  const paths = entries.flatMap(({ types, default: code }) => [types, code, `${code}.map`].map((path) => path.replace('./', '')));
  for (const wanted of ['LICENSE', 'README.md', 'package.json', ...paths]) {
    if (!files.includes(wanted)) throw new Error(`the package has no ${wanted}`);
  }
  const foreign = files.filter((path) => !/^(dist\/\w+\.(js|js\.map|d\.ts)|LICENSE|README\.md|package\.json)$/.test(path));
  if (foreign.length > 0) throw new Error(`the package should not hold ${foreign}`);
}

function checkFile(name, text) {
  if (name.endsWith('.d.ts') && text.includes('@internal')) throw new Error(`${name} declares something that is marked @internal`);
  if (name.endsWith('.map') && JSON.parse(text).sourcesContent?.length !== 1) throw new Error(`${name} lacks its source`);
}

function lint(tarball) {
  const tool = (name, ...args) => run(root, join(root, 'node_modules/.bin', name), ...args);
  tool('publint', 'run', '--strict', tarball);
  tool('attw', tarball, '--profile', 'esm-only', '--no-definitely-typed', '--format', 'ascii', '--no-emoji', '--no-color');
}

function use(tarball) {
  const { devDependencies } = manifest;
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module', private: true }));
  run(
    project,
    'npm',
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    tarball,
    ...['react', '@types/react', 'vue', 'svelte', 'solid-js', '@tanstack/db'].map((name) => `${name}@${devDependencies[name]}`),
  );
  writeFileSync(
    join(project, 'use.ts'),
    `
    import { watch, RefusedError, type View, type WatchSpec } from '@watchtide/client';
    import { authenticated, beginSession, endSession, getSession, type Session } from '@watchtide/client/auth';
    import { reportDelivery } from '@watchtide/client/delivery';
    import { autoRate } from '@watchtide/client/rate';
    import { hydrating, renderedStore, useResource, useWatch, useWatchSuspense } from '@watchtide/client/react';
    import * as solid from '@watchtide/client/solid';
    import * as svelte from '@watchtide/client/svelte';
    import { watchCollectionOptions, windowCollectionOptions } from '@watchtide/client/tanstack-db';
    import { windowOfTable, windowTableOptions } from '@watchtide/client/tanstack-table';
    import * as vue from '@watchtide/client/vue';
    import { Hub, serveTabs, sharedTransport, watchShared } from '@watchtide/client/shared';
    const tide = watch<{ notes: { text: string } }>('http://127.0.0.1:1/', { watches: ['notes'] });
    watch('http://127.0.0.1:1/', { maxRate: autoRate }).close();
    const view: View<{ text: string }> = tide.store('notes').view;
    if (view.state !== 'connecting' || typeof useWatch !== 'function' || typeof RefusedError !== 'function' || [authenticated, beginSession, endSession, getSession, reportDelivery, autoRate, hydrating, renderedStore, useResource, useWatchSuspense, solid.useResource, solid.useResources, solid.useWatch, svelte.useResource, svelte.useWatch, vue.useResource, vue.useWatch, watchCollectionOptions, windowCollectionOptions, windowOfTable, windowTableOptions, Hub, serveTabs, sharedTransport, watchShared].some((one) => typeof one !== 'function')) throw new Error('unusable');
    tide.close();
    const untyped = watch('http://127.0.0.1:1/', { watches: ['notes'] });
    untyped.add({ watch: 'mounts', prefix: '/home', labels: 'a=b', filter: 'true', fields: ['a', 'b.c'] });
    const part: WatchSpec<'notes'> = { watch: 'notes', filter: 'value.text != ""' };
    tide.remove(part);
    untyped.close();
    const tag = ({ tag }: Session) => tag;
    watchShared('http://127.0.0.1:1/', { transport: authenticated({ getToken: async ({ expired }) => String(expired), tag: tag({ name: '', issuer: '', mechanism: 'jwt', tag: 'x' }) }) }).close();
  `,
  );
  const tsc = join(root, 'node_modules/.bin/tsc');
  run(
    project,
    tsc,
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2022',
    '--skipLibCheck',
    '--lib',
    'es2022,dom,dom.iterable',
    'use.ts',
  );
  run(project, 'node', 'use.js');
}

/** Returns the output of a program; if it fails, prints all that it has printed. */
function run(cwd, program, ...args) {
  try {
    return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    console.error(`${error.stdout}${error.stderr}`);
    throw new Error(`${program} ${args.join(' ')}: failed`, { cause: error.code });
  }
}
