import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { type Classes, classesIn, leaks, selectorsOf } from './scoped';

const src = fileURLToPath(new URL('../../src', import.meta.url));

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).map((file) => join(src, file));
const read = (ending: RegExp) => files.filter((file) => ending.test(file)).map((file) => [file, readFileSync(file, 'utf8')] as const);

// The style of the frame is there from the start, for all pages.
const frame = join(src, 'app');

it('no style sheet of a part has a rule for what is outside of it', () => {
  const classes: Classes = new Map();
  for (const [file, text] of read(/\.tsx$/)) {
    for (const name of classesIn(text)) classes.set(name, (classes.get(name) ?? new Set()).add(dirname(file)));
  }
  const found = read(/\.css$/)
    .filter(([file]) => dirname(file) !== frame)
    .flatMap(([file, text]) => leaks(text, dirname(file), classes).map((leak) => `${relative(src, file)}: ${leak}`));
  expect(found).toEqual([]);
});

it('no two style sheets have animations of the same name', () => {
  const names = read(/\.css$/).flatMap(([, text]) => [...text.matchAll(/@keyframes\s+([\w-]+)/g)].map(([, name]) => name));
  expect(names).toEqual([...new Set(names)]);
});

it('finds rules that leak', () => {
  const classes: Classes = new Map([
    ['own', new Set(['a'])],
    ['shared', new Set(['a', 'b'])],
  ]);
  const css = `
    /* .own { } */
    .own, .own .shared > p:not(.shared, b) { color: red; }
    @media (max-width: 1px) { .shared { color: red; } :root[data-x] .own { a: b } }
    @keyframes x { from, 50% { color: red; } }
    :root { --colour: red; }
    :root { color: red; }
    p.own, p, [data-x] .own, .nowhere { color: red; }`;
  expect(leaks(css, 'a', classes)).toEqual([
    '“.shared” begins with no class that only this folder has',
    '“:root” begins with no class that only this folder has',
    '“p” begins with no class that only this folder has',
    '“[data-x] .own” begins with no class that only this folder has',
    '“.nowhere” begins with no class that only this folder has',
  ]);
  expect(selectorsOf('a:is(b, c), d { }')).toEqual(['a:is(b, c)', 'd']);
});

it('finds the classes of components', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is code
  expect([...classesIn('<p className="a b"><i className={`c ${kind} ${d ? " d" : ""}`} /> {...{className: e ? "e" : "f g"}}')]).toEqual([
    'a',
    'b',
    'c',
    'd',
    'e',
    'f',
    'g',
  ]);
});
