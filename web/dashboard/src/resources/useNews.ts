import type { Resource } from '@watchtide/client';
import { useRef } from 'react';
import { brief } from './brief';
import { columnID } from './column';
import { type Difference, diff } from './diff';
import { pathText } from './path';
import { hidden, isSecret } from './secret';

const most = 20; // differences to look at

/**
 * Returns the field that changed last while the row is shown, with its value: `cpu: 3.1`;
 * empty before the first change, and if it is the field of the column itself.
 */
export function useNews(resource: Resource, column: string): string {
  const last = useRef({ resource, news: '' });
  if (last.current.resource !== resource) {
    last.current = { resource, news: newsOf(last.current.resource.value, resource.value, column) ?? last.current.news };
  }
  return last.current.news;
}

/** Returns the first field that differs; undefined: none does. The column's own field, which needs no name, comes before others. */
export function newsOf(before: unknown, after: unknown, column: string): string | undefined {
  const found = diff(before, after, most);
  if (found.some(({ path }) => columnID(path) === column)) return '';
  return found[0] && text(found[0]);
}

function text({ path, after }: Difference): string {
  const value = after === undefined ? 'removed' : isSecret(path, after) ? hidden : brief(after, 80);
  return path.length > 0 ? `${pathText(path)}: ${value}` : value;
}
