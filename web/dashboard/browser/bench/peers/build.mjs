// Bundles the pages, for production.
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const folder = (name) => fileURLToPath(new URL(name, import.meta.url));

await build({
  entryPoints: ['aggrid', 'tanstack'].map((name) => folder(`pages/${name}.js`)),
  outdir: folder('pages/built'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  define: { 'process.env.NODE_ENV': '"production"' },
  logLevel: 'warning',
});
