import { fileURLToPath } from 'node:url';
import { run } from './process.mjs';

const repository = fileURLToPath(new URL('../../../../', import.meta.url));
const folder = fileURLToPath(new URL('../.build/', import.meta.url));

const built = new Map();

/** Compiles a Go program of the repository, once in a run; returns its path. */
export function build(program) {
  if (!built.has(program)) built.set(program, compile(program));
  return built.get(program);
}

async function compile(program) {
  const file = folder + program.split('/').at(-1);
  await run('go', ['build', '-o', file, `./${program}`], { cwd: repository });
  return file;
}
