import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hueOf, hues, severityOf } from '../../src/resources/severity';

const css = (file: string) => readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8');

/** The colours of a block, by name. */
function colours(text: string, selector: string): Map<string, string> {
  const start = text.indexOf(`${selector} {`);
  const block = text.slice(start, text.indexOf('}', start));
  return new Map([...block.matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)].map(([, name, colour]) => [name!, colour!]));
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light! + 0.05) / (dark! + 0.05);
}

describe('a badge', () => {
  it.each([':root', ':root[data-theme="dark"]'])('can be read in the theme of %s', (selector) => {
    const badges = colours(css('resources/Badge.css'), selector);
    const names = [...badges.keys()].filter((name) => !name.endsWith('-back'));
    expect(names).toHaveLength(4 + hues);
    for (const name of names) expect(contrast(badges.get(name)!, badges.get(`${name}-back`)!), name).toBeGreaterThanOrEqual(4.5);
  });

  it.each([':root', ':root[data-theme="dark"]'])('and a number over its bar, in the theme of %s', (selector) => {
    const theme = colours(css('app/theme.css'), selector);
    expect(contrast(theme.get('ink')!, theme.get('heat')!)).toBeGreaterThanOrEqual(4.5);
  });

  it('shows how serious a well-known word is', () => {
    expect(['critical', 'Failed', 'warning', 'Running', 'pending', 'checkout'].map(severityOf)).toEqual([
      'bad',
      'bad',
      'warn',
      'ok',
      'idle',
      undefined,
    ]);
  });

  it('has a hue that is always the same', () => {
    expect(hueOf('eu-west-1a')).toBe(hueOf('eu-west-1a'));
    expect(new Set(Array.from({ length: 100 }, (_, i) => hueOf(`team-${i}`))).size).toBe(hues);
  });
});
