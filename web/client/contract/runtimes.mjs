import { chmodSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const arch = { x64: 'x64', arm64: process.platform === 'linux' ? 'arm64' : 'aarch64' }[process.arch];

/** The runtimes without a browser: how each runs a file, or why it is missing. */
export const runtimes = [
  { name: `Node ${process.versions.node}`, command: [process.execPath, 'console.js'] },
  runtime('Deno', `@deno/${process.platform}-${arch}${process.platform === 'linux' ? '-glibc' : ''}`, 'deno', [
    'run',
    '--allow-net',
    '--no-config',
    'console.js',
  ]),
  runtime('Bun', `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : 'x64'}`, 'bin/bun', ['run', 'console.js']),
];

// The scripts of their packages would link the programs; no scripts are run here.
function runtime(name, pack, path, args) {
  const program = resolve(pack, path);
  if (!program) return { name, missing: `${pack} is not installed: npm ci in web/client/contract` };
  chmodSync(program, 0o755);
  return { name, command: [program, ...args] };
}

function resolve(pack, path) {
  try {
    const program = join(dirname(require.resolve(`${pack}/package.json`)), path);
    return existsSync(program) ? program : undefined;
  } catch {
    return undefined;
  }
}
