import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Returns the types of some entry points, and of what they refer to, as one file without
 * imports. It reads what tsc has written: each declaration begins at the start of a line,
 * and imports nothing but other files of the package.
 */
export function declarations(entries) {
  const modules = new Map();
  const exported = new Map(); // by name
  for (const entry of entries) for (const [name, declared] of exportsOf(load(entry, modules), modules)) exported.set(name, declared);
  const kept = new Map(); // by name
  for (const [name, declared] of exported) keep(name, declared, modules, kept);
  const texts = [...kept.values()].map(({ text }) => text);
  return `${texts.join('\n')}\nexport { ${[...exported.keys()].sort().join(', ')} };\n`;
}

const begin = '(?:import|export|declare|type|interface|class|function|const)\\b';
const comment = '/\\*\\*(?:[^*]|\\*(?!/))*\\*/\\n';
const statement = new RegExp(`^(?:${comment})?${begin}[^]*?(?=^/\\*\\*|^${begin}|(?![^]))`, 'gm');
const declaration = /^(?:export )?(?:declare )?(?:abstract )?(?:class|interface|type|function|const) (\w+)/m;
const reexport = /^export (?:type )?(\*|\{[^}]*\}) from '(.*?)';/m;
const imported = /^import (?:type )?\{([^}]*)\} from '(.*?)';/m;

/** A file: what it declares, imports and exports. */
function load(path, modules) {
  const known = modules.get(path);
  if (known) return known;
  const module = { path, declared: new Map(), imports: new Map(), reexports: [] };
  modules.set(path, module);
  for (const [text] of readFileSync(path, 'utf8').matchAll(statement)) read(text, module);
  return module;
}

function read(text, module) {
  const from = (file) => {
    if (!file.startsWith('./')) throw new Error(`${module.path} imports ${file}`);
    return join(dirname(module.path), file.replace(/\.js$/, '.d.ts'));
  };
  const importing = imported.exec(text);
  if (importing) return names(importing[1]).forEach((name) => module.imports.set(name, from(importing[2])));
  const exporting = reexport.exec(text);
  if (exporting)
    return void module.reexports.push({ names: exporting[1] === '*' ? undefined : names(exporting[1]), path: from(exporting[2]) });
  const [, name] = declaration.exec(text) ?? [];
  if (!name) {
    if (text.trim() === 'export {};') return;
    throw new Error(`${module.path}: unknown statement ${text}`);
  }
  const before = module.declared.get(name); // an overload
  module.declared.set(name, { name, module, exported: /^export /m.test(text), text: (before?.text ?? '') + plain(text) });
}

function names(list) {
  if (/\bas\b/.test(list)) throw new Error(`renamed: ${list}`);
  return list
    .replace(/[{}]/g, '')
    .split(',')
    .map((name) => name.replace(/\btype\b/, '').trim())
    .filter(Boolean);
}

// In a file of types, a declaration of a value needs declare.
function plain(text) {
  return `${text.trimEnd().replace(/^export /m, '')}\n`;
}

/** Returns the declarations that a module exports, by name. */
function exportsOf(module, modules) {
  const own = [...module.declared].filter(([, { exported }]) => exported);
  const others = module.reexports.flatMap(({ names, path }) => {
    const all = exportsOf(load(path, modules), modules);
    return (names ?? [...all.keys()]).map((name) => [name, all.get(name) ?? missing(name, path)]);
  });
  return new Map([...own, ...others]);
}

function missing(name, path) {
  throw new Error(`${path} does not export ${name}`);
}

/** Adds a declaration, and all that it refers to. */
function keep(name, declared, modules, kept) {
  const known = kept.get(name);
  if (known === declared) return;
  if (known) throw new Error(`${known.module.path} and ${declared.module.path} both declare ${name}`);
  kept.set(name, declared);
  const { module } = declared;
  for (const [word] of code(declared.text).matchAll(/\b[A-Za-z_]\w*\b/g)) {
    const other = module.declared.get(word) ?? resolve(word, module, modules);
    if (other) keep(word, other, modules, kept);
  }
}

const code = (text) => text.replace(/\/\*[^]*?\*\//g, '');

function resolve(name, module, modules) {
  const path = module.imports.get(name);
  return path && exportsOf(load(path, modules), modules).get(name);
}
