import { fileURLToPath } from 'node:url';
import { transformAsync } from '@babel/core';
import { compile } from 'svelte/compiler';
import { defineConfig } from 'vitest/config';

const src = fileURLToPath(new URL('src/', import.meta.url));

export default defineConfig({
  plugins: [svelte(), reactCompiler()],
  // Svelte and Solid have another build for servers, which Node would take.
  resolve: {
    conditions: ['browser', 'module', 'development'],
    // The examples import the package by its name.
    alias: [
      { find: /^@watchtide\/client$/, replacement: `${src}index.ts` },
      { find: /^@watchtide\/client\/(\w+)$/, replacement: `${src}$1.ts` },
    ],
  },
  test: {
    include: ['test/**/*.test.{ts,tsx}'],
    // A test that forgets a timer or a listener must not disturb the next file.
    isolate: true,
    testTimeout: 60_000, // those that try very much take long on a busy machine
    sequence: { shuffle: true },
    server: { deps: { inline: ['svelte', 'solid-js'] } },
  },
});

/** Components of Svelte, as its compiler makes them. */
function svelte() {
  return {
    name: 'svelte',
    transform(code, filename) {
      if (!filename.endsWith('.svelte')) return undefined;
      const { js } = compile(code, { filename, generate: 'client', dev: true });
      return { code: js.code, map: js.map };
    },
  };
}

/** Components in compiled/, as React's compiler makes them. */
function reactCompiler() {
  return {
    name: 'react-compiler',
    enforce: 'pre',
    async transform(code, filename) {
      if (!/\/compiled\/\w+\.tsx$/.test(filename)) return undefined;
      const made = await transformAsync(code, {
        filename,
        presets: [['@babel/preset-typescript', { onlyRemoveTypeImports: true }]],
        plugins: [['babel-plugin-react-compiler', { panicThreshold: 'all_errors' }]],
        parserOpts: { plugins: ['jsx'] },
        sourceMaps: true,
        babelrc: false,
        configFile: false,
      });
      return made?.code ? { code: made.code, map: made.map } : undefined;
    },
  };
}
