import type { Path } from './path';

const secrets = new Set(
  'secret secrets password passwords passwd passphrase pwd token credential credentials apikey privatekey jwt otp pin cookie cookies authorization bearer'.split(
    ' ',
  ),
);
const ofKeys = new Set('api private secret access signing encryption session account auth'.split(' '));

// `accessKey`, `ACCESS_KEY` and `access-key` have the same words.
const wordsOf = (name: string) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);

/** Reports whether the name of a field says that it holds a secret: `db_password`, `accessToken`, `api-key`. Numbers of tokens are none. */
export function isSecretName(name: string, value?: unknown): boolean {
  if (typeof value === 'boolean' || value === null) return false;
  const words = wordsOf(name);
  if (words.some((word) => secrets.has(word))) return true;
  if (words.includes('tokens')) return typeof value === 'string' || typeof value === 'object';
  return words.some((word, i) => (word === 'key' || word === 'keys') && ofKeys.has(words[i - 1] ?? ''));
}

/** Reports whether a field, or what it is in, is named as a secret. */
export const isSecret = (path: Path, value?: unknown): boolean => path.some((name) => isSecretName(name, value));

/** Takes the place of a secret. */
export const hidden = '•••';
