import { useEffect, useState } from 'react';
import { ask } from '../gateway/session';
import { address, type Target } from './resource';

/** What the access rules let the user do with a resource. */
export interface Methods {
  readonly put: boolean;
  readonly delete: boolean;
}

const all: Methods = { put: true, delete: true };

/** Asks the gateway what the user may do with a resource, once while it is shown. asked: it exists, and can be written. Until it answers, and where it says nothing, everything. */
export function useMethods({ watch, key, key_encoding }: Target, asked: boolean): Methods {
  const [methods, setMethods] = useState(all);
  useEffect(() => {
    if (!asked) return;
    const ended = new AbortController();
    // A write is refused in any case if it is not allowed: a failure here says nothing.
    methodsOf({ watch, key, ...(key_encoding && { key_encoding }) }, ended.signal).then(setMethods, () => {});
    return () => ended.abort();
  }, [watch, key, key_encoding, asked]);
  return methods;
}

async function methodsOf(target: Target, signal: AbortSignal): Promise<Methods> {
  const response = await ask(address(target), { method: 'HEAD', signal, cache: 'no-store' });
  const allow = response.headers.get('Allow');
  if (!response.ok || allow === null) return all;
  const has = (method: string) => allow.split(/\s*,\s*/).includes(method);
  return { put: has('PUT'), delete: has('DELETE') };
}
