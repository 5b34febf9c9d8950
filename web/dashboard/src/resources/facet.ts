import { fieldText, valueText } from '../query/query';

// The terms of a filter as they were typed.
const terms = (filter: string): string[] => filter.match(/(?:\\[^]|"(?:\\[^]|[^"\\])*"?|[^\s"\\])+/gu) ?? [];

const termOf = (field: string, word: string) => `${fieldText(field)}:${valueText(word)}`;

/** Reports whether a filter has the condition that a field is a word. */
export const has = (filter: string, field: string, word: string): boolean => terms(filter).includes(termOf(field, word));

/** Returns a filter with the condition that a field is a word in place of others on that field; without it, if it has it. */
export function toggled(filter: string, field: string, word: string): string {
  const term = termOf(field, word);
  const others = terms(filter).filter((one) => !one.startsWith(`${fieldText(field)}:`));
  return (has(filter, field, word) ? others : [...others, term]).join(' ');
}
