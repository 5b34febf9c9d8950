import { useEffect, useState } from 'react';
import { at } from './base';

/** Returns the name of the provider with which users can sign in; empty: there is none, or it is not known yet. */
export function useProvider(): string {
  const [name, setName] = useState('');
  useEffect(() => {
    const gone = new AbortController();
    find(gone.signal).then(setName, () => {}); // the token is left
    return () => gone.abort();
  }, []);
  return name;
}

// Without the cookie: one that is not accepted any more would be refused.
async function find(signal: AbortSignal): Promise<string> {
  const response = await fetch(at('v1/session'), { signal, credentials: 'omit', cache: 'no-store' });
  if (!response.ok) return '';
  const { login } = (await response.json()) as { login?: { name: string } };
  return login?.name ?? '';
}
