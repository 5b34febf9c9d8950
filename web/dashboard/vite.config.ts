import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const client = (file: string) => fileURLToPath(new URL(`../client/src/${file}`, import.meta.url));

export default defineConfig({
  // Relative, so that the page works under any path.
  base: './',
  plugins: [react()],
  resolve: {
    alias: [
      { find: /^@watchtide\/client$/, replacement: client('index.ts') },
      { find: /^@watchtide\/client\/auth$/, replacement: client('auth.ts') },
      { find: /^@watchtide\/client\/react$/, replacement: client('react.ts') },
      { find: /^@watchtide\/client\/shared$/, replacement: client('shared.ts') },
    ],
    dedupe: ['react'],
  },
  // The gateway behind `npm run dev`: that of `make run`, unless set.
  server: { proxy: { '/v1': process.env.GATEWAY ?? 'http://127.0.0.1:8080' } },
  build: {
    outDir: '../page',
    emptyOutDir: true,
    target: 'es2022',
    cssCodeSplit: false,
    assetsInlineLimit: 0, // data: URLs do not have the page's origin
    chunkSizeWarningLimit: 700,
    modulePreload: false,
    license: { fileName: 'assets/licenses.txt' },
    rolldownOptions: {
      // The server makes browsers revalidate each file, so its name need not change
      // with its content.
      output: { entryFileNames: 'assets/[name].js', chunkFileNames: 'assets/[name].js', assetFileNames: 'assets/[name][extname]' },
    },
  },
  worker: {
    format: 'es',
    // A worker lives as long as any of its tabs: one of an older build must not serve
    // the pages of a newer one, so here the name changes with the content.
    rolldownOptions: { output: { entryFileNames: 'assets/[name]-[hash].js' } },
  },
  test: {
    sequence: { shuffle: true },
    // A document takes longer to make than most tests take. Those in a file without
    // JSX that need one say so at its top.
    projects: [
      { extends: true, test: { name: 'page', include: ['test/**/*.test.tsx', 'src/**/*.test.tsx'], environment: 'happy-dom' } },
      { extends: true, test: { name: 'code', include: ['test/**/*.test.ts', 'src/**/*.test.ts'], environment: 'node' } },
    ],
  },
});
