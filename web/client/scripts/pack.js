// Packs the package, installs it in an empty project, and uses it there like any
// other package: every entry point resolves, the types are found, and it contains
// nothing that is not needed.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'watchtide-client-'));

try {
  check(JSON.parse(npm(root, 'pack', '--json', '--pack-destination', project)));
} finally {
  rmSync(project, { recursive: true, force: true });
}

function check(packed) {
  // A list of the packages, or a map by name, depending on the version of npm.
  const [tarball] = Array.isArray(packed) ? packed : Object.values(packed);
  const files = tarball.files.map(({ path }) => path);
  for (const wanted of [
    'LICENSE',
    'README.md',
    'package.json',
    'dist/index.js',
    'dist/index.d.ts',
    'dist/auth.js',
    'dist/auth.d.ts',
    'dist/delivery.js',
    'dist/delivery.d.ts',
    'dist/react.js',
    'dist/react.d.ts',
    'dist/shared.js',
    'dist/shared.d.ts',
  ]) {
    if (!files.includes(wanted)) throw new Error(`the package has no ${wanted}`);
  }
  const foreign = files.filter((path) => !/^(dist\/\w+\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/.test(path));
  if (foreign.length > 0) throw new Error(`the package should not hold ${foreign}`);
  use(tarball.filename);
  console.log(`${tarball.filename}: ${tarball.size} B, ${files.length} files; installed and used in an empty project`);
}

function use(filename) {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module', private: true }));
  npm(
    project,
    'install',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    `./${filename}`,
    `react@${devDependencies.react}`,
    `@types/react@${devDependencies['@types/react']}`,
  );
  writeFileSync(
    join(project, 'use.ts'),
    `
    import { watch, RefusedError, type View, type WatchSpec } from '@watchtide/client';
    import { authenticated, beginSession, endSession, getSession, type Session } from '@watchtide/client/auth';
    import { reportDelivery } from '@watchtide/client/delivery';
    import { useWatch } from '@watchtide/client/react';
    import { Hub, serveTabs, sharedTransport, watchShared } from '@watchtide/client/shared';
    const tide = watch<{ notes: { text: string } }>('http://127.0.0.1:1/', { watches: ['notes'] });
    const view: View<{ text: string }> = tide.store('notes').view;
    if (view.state !== 'connecting' || typeof useWatch !== 'function' || typeof RefusedError !== 'function' || [authenticated, beginSession, endSession, getSession, reportDelivery, Hub, serveTabs, sharedTransport, watchShared].some((one) => typeof one !== 'function')) throw new Error('unusable');
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
  execFileSync(tsc, ['--strict', '--module', 'nodenext', '--target', 'es2022', '--lib', 'es2022,dom,dom.iterable', 'use.ts'], {
    cwd: project,
    stdio: 'inherit',
  });
  execFileSync('node', ['use.js'], { cwd: project, stdio: 'inherit' });
}

function npm(cwd, ...args) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}
