import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.{ts,tsx}'],
    // A test that forgets a timer or a listener must not disturb the next file.
    isolate: true,
    testTimeout: 60_000, // those that try very much take long on a busy machine
    sequence: { shuffle: true },
  },
});
