import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { boot } from './scripts/boot.ts';

const client = (file: string) => fileURLToPath(new URL(`../client/src/${file}`, import.meta.url));

export default defineConfig({
  // Relative, so that the page works under any path.
  base: './',
  plugins: [react(), boot()],
  resolve: {
    alias: [
      { find: /^@watchtide\/client$/, replacement: client('index.ts') },
      { find: /^@watchtide\/client\/auth$/, replacement: client('auth.ts') },
      { find: /^@watchtide\/client\/counts$/, replacement: client('counts.ts') },
      { find: /^@watchtide\/client\/digits$/, replacement: client('digits.ts') },
      { find: /^@watchtide\/client\/pool$/, replacement: client('pool.ts') },
      { find: /^@watchtide\/client\/react$/, replacement: client('react.ts') },
      { find: /^@watchtide\/client\/shared$/, replacement: client('shared.ts') },
      { find: /^@watchtide\/client\/virtual$/, replacement: client('virtual.ts') },
      { find: /^@watchtide\/client\/window$/, replacement: client('window.ts') },
    ],
    dedupe: ['react'],
  },
  // The gateway behind `npm run dev`: that of `make run`, unless set.
  server: { proxy: { '/v1': process.env.GATEWAY ?? 'http://127.0.0.1:8080' } },
  build: {
    outDir: '../../internal/web/page',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // data: URLs do not have the page's origin
    chunkSizeWarningLimit: 700,
    modulePreload: false,
    license: { fileName: 'assets/licenses.txt' },
    rolldownOptions: {
      // Browsers keep files whose names change with the content. The names of the boot script
      // and of the style do not change: they are asked for again each time, so that a page of a
      // replica that has been updated has a style, and an explanation, from one that has not.
      output: {
        entryFileNames: 'assets/[name]-[hash].js',
        chunkFileNames: 'assets/[name]-[hash].js',
        // The style of the frame has a fixed name, those of pages change theirs.
        assetFileNames: ({ names: [name = ''] }) => {
          if (name === 'index.css') return 'assets/style.css';
          return name.endsWith('.css') ? 'assets/[name]-[hash][extname]' : 'assets/[name][extname]';
        },
      },
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
