/** The folders whose components have each class. */
export type Classes = Map<string, Set<string>>;

/** Returns the classes that components give to elements. */
export function classesIn(text: string): Set<string> {
  const found = [...text.matchAll(/className\s*[=:]\s*/g)].map(({ 0: before, index }) => expression(text, index + before.length));
  return new Set(found.flatMap((code) => literals(code)).flatMap((literal) => literal.split(/\s+/).filter((name) => name !== '')));
}

// An attribute in quotes or braces, or the value of a member.
function expression(text: string, from: number): string {
  const first = text[from]!;
  if (first === '"' || first === "'") return text.slice(from, text.indexOf(first, from + 1) + 1);
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    if ('{(['.includes(text[i]!)) depth++;
    if ('})]'.includes(text[i]!)) depth--;
    if (depth < 0 || (depth === 0 && (text[i] === '}' || text[i] === ','))) return text.slice(from, i + 1);
  }
  return text.slice(from);
}

// What templates insert is taken out first: it has texts of its own.
function literals(code: string): string[] {
  const inserted = [...code.matchAll(/\$\{([^}]*)\}/g)].flatMap(([, inner]) => literals(inner!));
  const own = [...code.replace(/\$\{[^}]*\}/g, ' ').matchAll(/"([^"]*)"|'([^']*)'|`([^`]*)`/g)];
  return [...own.map(([, a, b, c]) => a ?? b ?? c ?? ''), ...inserted];
}

/** Returns the selectors of a style sheet that a class of another folder, or none, begins. */
export function leaks(css: string, folder: string, classes: Classes): string[] {
  const belongs = (name: string) => [...(classes.get(name) ?? [])].join() === folder;
  return rulesOf(css)
    .filter(({ selector, body }) => !(selector.startsWith(':root') && isVariables(body)))
    .filter(({ selector }) => {
      const [first = ''] = selector.replace(/^:root\S*\s+/, '').split(/[\s>+~]/);
      return ![...first.replace(/:\w[\w-]*\(.*/, '').matchAll(/\.([\w-]+)/g)].some(([, name]) => belongs(name!));
    })
    .map(({ selector }) => `“${selector}” begins with no class that only this folder has`);
}

const isVariables = (body: string) => body.split(';').every((line) => line.trim() === '' || line.trim().startsWith('--'));

interface Rule {
  readonly selector: string;
  readonly body: string;
}

function rulesOf(css: string): Rule[] {
  const text = css.replace(/\/\*[^]*?\*\//g, '').replace(/@keyframes[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}/g, '');
  const rules = [...text.matchAll(/([^{};]+)\{([^{}]*)\}/g)];
  return rules.flatMap(([, head, body]) => selectorsOf(`${head}{}`).map((selector) => ({ selector, body: body! })));
}

/** Returns the selectors of a rule; the commas in parentheses separate none. */
export function selectorsOf(rule: string): string[] {
  const out = [''];
  let depth = 0;
  for (const char of rule.slice(0, rule.lastIndexOf('{'))) {
    if (char === '(') depth++;
    if (char === ')') depth--;
    if (char === ',' && depth === 0) out.push('');
    else out[out.length - 1] += char;
  }
  return out.map((selector) => selector.trim().replace(/\s+/g, ' '));
}
