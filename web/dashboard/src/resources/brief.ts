import { hidden, isSecretName } from './secret';

/** Formats a value in one line of at most limit characters: text verbatim, everything else as JSON, without its secrets. */
export function brief(value: unknown, limit = 200): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return clip(value, limit);
  return clip(json(value, limit), limit);
}

// JSON.stringify would serialise all of a large value before it is cut.
function json(value: unknown, room: number): string {
  if (typeof value === 'string') return JSON.stringify(clip(value, room));
  if (typeof value !== 'object' || value === null) return String(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  let text = open!;
  for (const name in value) {
    if (text.length > room) return text;
    if (text.length > 1) text += ', ';
    if (open === '{') text += `${clip(name, room)}: `;
    const inner = (value as Record<string, unknown>)[name];
    text += open === '{' && isSecretName(name, inner) ? hidden : json(inner, room - text.length);
  }
  return text + close;
}

const clip = (text: string, limit: number) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text);
