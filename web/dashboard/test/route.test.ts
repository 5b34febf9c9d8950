import { describe, expect, it } from 'vitest';
import { href, parseRoute } from '../src/app/route';

describe('the route', () => {
  it('is parsed as it was formatted', () => {
    const options = new URLSearchParams({ filter: 'a&b?c', sort: 'key' });
    const route = parseRoute(href('watches', 'a/b c', options));
    expect([route.page, route.name, route.options.toString()]).toEqual(['watches', 'a/b c', options.toString()]);
  });
  it.each(['', '#', '#/'])('is the overview for %j', (hash) => {
    expect(parseRoute(hash)).toMatchObject({ page: '', name: '' });
  });
  it('accepts a name that is not encoded', () => {
    expect(parseRoute('#/watches/50%').name).toBe('50%');
  });
});
