import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const src = fileURLToPath(new URL('src/', import.meta.url));

export default defineConfig({
  // The examples import the package by its name.
  resolve: {
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
  },
});
