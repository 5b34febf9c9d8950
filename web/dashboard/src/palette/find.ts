/** Something that the palette can go to. */
export interface Place {
  readonly kind: 'page' | 'watch' | 'key';
  readonly text: string;
  readonly note: string;
  /** The fragment of its URL. */
  readonly hash: string;
}

const most = 30;

/**
 * Returns the texts that have all words of what was typed, whatever their case: those that
 * begin with it first, and at most so many that they can be looked through.
 */
export function find(typed: string, texts: Iterable<string>): string[] {
  const words = typed.trim().toLowerCase().split(/\s+/u);
  const whole = typed.trim().toLowerCase();
  const first: string[] = [];
  const others: string[] = [];
  for (const text of texts) {
    const lower = text.toLowerCase();
    if (!words.every((word) => lower.includes(word))) continue;
    const list = lower.startsWith(whole) ? first : others;
    if (list.length < most) list.push(text);
    if (first.length === most) break;
  }
  return [...first, ...others].slice(0, most);
}
