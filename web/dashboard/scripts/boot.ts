import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

/** Loads the entry by a small script of a fixed name, and lets the browser fetch both at once. */
export function boot(): Plugin {
  const fileName = 'assets/boot.js';
  return {
    name: 'boot',
    apply: 'build',
    generateBundle(_options, bundle) {
      const entry = Object.values(bundle).find((file) => file.type === 'chunk' && file.isEntry);
      if (!entry) throw new Error('the page has no entry');
      const source = readFileSync(new URL('../src/boot.js', import.meta.url), 'utf8');
      this.emitFile({ type: 'asset', fileName, source: source.replace('ENTRY', entry.fileName.replace('assets/', '')) });
    },
    transformIndexHtml: {
      order: 'post',
      handler: (html) =>
        html.replace(
          /<script type="module" crossorigin src="(.*?)"><\/script>/,
          `<script type="module" src="./${fileName}"></script>\n  <link rel="modulepreload" href="$1">`,
        ),
    },
  };
}
