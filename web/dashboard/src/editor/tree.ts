import type { Fault } from './json';
import { placeOf, tokensOf } from './json';

/** A JSON value whose numbers have their digits, and whose objects have their order. */
export type Tree =
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'scalar'; readonly value: string | boolean | null }
  | { readonly kind: 'array'; readonly items: readonly Tree[] }
  | { readonly kind: 'object'; readonly members: ReadonlyArray<readonly [string, Tree]> };

/** Returns the tree of a JSON text, which must be correct; a fault if an object has a name twice. */
export function treeOf(text: string): { readonly value: Tree } | Fault {
  const tokens = tokensOf(text);
  let next = 0;
  let twice: Fault | undefined;

  function value(): Tree {
    const { text } = tokens[next++]!;
    if (text === '{') return object();
    if (text === '[') return array();
    if (/^[-\d]/.test(text)) return { kind: 'number', text };
    return { kind: 'scalar', value: JSON.parse(text) as string | boolean | null };
  }

  function array(): Tree {
    const items: Tree[] = [];
    while (tokens[next]!.text !== ']') {
      items.push(value());
      if (tokens[next]!.text === ',') next++;
    }
    next++;
    return { kind: 'array', items };
  }

  function object(): Tree {
    const members: Array<[string, Tree]> = [];
    const names = new Set<string>();
    while (tokens[next]!.text !== '}') {
      const token = tokens[next]!;
      const name = JSON.parse(token.text) as string;
      if (names.has(name))
        twice ??= { ...placeOf(text, token.at), reason: `the name ${token.text} is there twice, which YAML does not allow` };
      names.add(name);
      next += 2;
      members.push([name, value()]);
      if (tokens[next]!.text === ',') next++;
    }
    next++;
    return { kind: 'object', members };
  }

  const tree = value();
  return twice ?? { value: tree };
}
