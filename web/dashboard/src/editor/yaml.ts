// YAML for values that are JSON. It is loaded when it is first needed.
import { Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type ScalarTag, type Tags, visit } from 'yaml';
import type { Fault } from './json';
import { type Tree, treeOf } from './tree';

/** A number with all of its digits. */
class Digits {
  constructor(readonly text: string) {}
}

const numberTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: (value) => value instanceof Digits,
  test: /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/,
  resolve: (text) => new Digits(text),
  stringify: ({ value }) => (value as Digits).text,
};

// Numbers of YAML that JSON does not have. Without this they would become text.
const otherNumberTag: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  identify: () => false,
  test: /^(?:0x[0-9a-fA-F]+|0o[0-7]+|[-+]?(?:\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN|[-+]?[0-9]+|[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+)$/,
  resolve(text, onError) {
    onError(`JSON has no number like ${text}: write a decimal number like 17 or -0.5, or put it in quotes`);
    return text;
  },
};

const isNumberTag = (tag: Tags[number]) => typeof tag === 'object' && /:(int|float)$/.test(tag.tag);

const options = {
  version: '1.2',
  schema: 'core',
  customTags: (tags: Tags) => [numberTag, otherNumberTag, ...tags.filter((tag) => !isNumberTag(tag))],
  strict: true,
  uniqueKeys: true,
} as const;

/** Converts JSON, which must be correct, to YAML; a fault if it has a name twice in an object. */
export function toYAML(json: string): string | Fault {
  const tree = treeOf(json);
  if (!('value' in tree)) return tree;
  const document = new Document(plain(tree.value), options);
  return document.toString({ lineWidth: 0 });
}

function plain(tree: Tree): unknown {
  if (tree.kind === 'number') return new Digits(tree.text);
  if (tree.kind === 'array') return tree.items.map(plain);
  if (tree.kind === 'object') return new Map(tree.members.map(([name, value]) => [name, plain(value)]));
  return tree.value;
}

// What aliases may expand to.
const maxNodes = 100_000;

/** Converts YAML to JSON in which numbers have the same digits, or returns the first fault. */
export function fromYAML(text: string): { readonly json: string } | Fault {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...options, lineCounter: lines });
  const faultAt = (at: number, reason: string): Fault => {
    const { line, col } = lines.linePos(at);
    return { at, line: Math.max(1, line), column: Math.max(1, col), reason };
  };
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong) return faultAt(wrong.pos[0], sentence(wrong.message));
  try {
    return { json: new Writer(document).write(document.contents as Node | null) };
  } catch (error) {
    if (error instanceof Refused) return faultAt(error.at, error.message);
    if (error instanceof RangeError) return faultAt(0, 'the value is nested too deeply');
    throw error;
  }
}

const sentence = (message: string) => message.split('\n')[0]!.replace(/ at line \d+, column \d+:?$/, '');

class Refused extends Error {
  constructor(
    readonly at: number,
    reason: string,
  ) {
    super(reason);
  }
}

/** Writes the nodes of a document as JSON. */
class Writer {
  #nodes = 0;
  readonly #anchors = new Map<string, Node>();

  constructor(document: Document) {
    visit(document, {
      Value: (_, node) => {
        if (node.anchor && this.#anchors.has(node.anchor))
          throw new Refused(node.range?.[0] ?? 0, `the anchor “${node.anchor}” is there twice`);
        if (node.anchor) this.#anchors.set(node.anchor, node);
      },
    });
  }

  write(node: Node | null): string {
    const at = node?.range?.[0] ?? 0;
    if (++this.#nodes > maxNodes) throw new Refused(at, `the value has more than ${maxNodes} parts`);
    if (node === null) return 'null';
    if (isAlias(node)) return this.#alias(node.source, at);
    if (isMap(node))
      return `{${node.items.map(({ key, value }) => `${this.#name(key as Node)}:${this.write(value as Node | null)}`).join(',')}}`;
    if (isSeq(node)) return `[${node.items.map((item) => this.write(item as Node)).join(',')}]`;
    return isScalar(node) ? scalar(node.value, at) : 'null';
  }

  #alias(name: string, at: number): string {
    const target = this.#anchors.get(name);
    if (!target) throw new Refused(at, `there is no anchor “${name}” before this alias`);
    return this.write(target);
  }

  #name(key: Node | null): string {
    if (isScalar(key) && typeof key.value === 'string') return JSON.stringify(key.value);
    throw new Refused(key?.range?.[0] ?? 0, 'in JSON a name is text: put it in quotes');
  }
}

function scalar(value: unknown, at: number): string {
  if (value instanceof Digits) return value.text;
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return JSON.stringify(value);
  throw new Refused(at, 'JSON has no value like this: put it in quotes');
}
