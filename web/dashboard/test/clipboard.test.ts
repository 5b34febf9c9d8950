// @vitest-environment happy-dom
import { afterEach, describe, expect, it, vi } from 'vitest';
import { copy } from '../src/app/clipboard';

afterEach(() => vi.unstubAllGlobals());

describe('copying', () => {
  it('uses the clipboard if there is one', async () => {
    const writeText = vi.fn(() => Promise.resolve());
    vi.stubGlobal('navigator', { clipboard: { writeText } });
    expect(await copy('x')).toBe(true);
    expect(writeText).toHaveBeenCalledWith('x');
  });

  it.each([
    ['there is none, as without https', {}],
    ['it refuses', { clipboard: { writeText: () => Promise.reject(new Error('no')) } }],
  ])('selects and copies where %s', async (_, navigator) => {
    vi.stubGlobal('navigator', navigator);
    let copied = '';
    document.execCommand = (command) => {
      copied = `${command} ${(document.querySelector('textarea') as HTMLTextAreaElement).value}`;
      return true;
    };
    expect(await copy("it's\nso")).toBe(true);
    expect([copied, document.querySelector('textarea')]).toEqual(["copy it's\nso", null]);
  });

  it('reports a failure', async () => {
    vi.stubGlobal('navigator', {});
    document.execCommand = () => false;
    expect(await copy('x')).toBe(false);
  });
});
