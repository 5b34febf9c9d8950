import { useEffect, useRef, useState } from 'react';
import { put, type Refusal, type Target } from './resource';

/** The gateway's verdict on a text that is not saved yet. */
export interface Validation {
  readonly state: 'none' | 'asking' | 'accepted' | 'refused';
  readonly refusal?: Refusal;
}

const none: Validation = { state: 'none' };

// A text is not validated while it is being typed.
const debounceMs = 500;

/**
 * Asks the gateway whether it would accept the text, once the user stops typing and
 * if it is ready. The returned function asks at once.
 */
export function useValidation(
  { watch, key, key_encoding }: Target,
  text: string,
  revision: string | undefined,
  ready: boolean,
): [Validation, () => void] {
  const [validation, setValidation] = useState(none);
  const ask = useRef(() => {});
  useEffect(() => {
    setValidation(none);
    if (!ready) return;
    const ended = new AbortController();
    ask.current = () => {
      clearTimeout(timer);
      setValidation({ state: 'asking' });
      const target = { watch, key, ...(key_encoding && { key_encoding }) };
      void judge(put(target, text, { revision, validateOnly: true, signal: ended.signal })).then((found) => found && setValidation(found));
    };
    const timer = setTimeout(() => ask.current(), debounceMs);
    return () => {
      ask.current = () => {};
      clearTimeout(timer);
      ended.abort();
    };
  }, [watch, key, key_encoding, text, revision, ready]);
  return [validation, () => ask.current()];
}

// Returns undefined if the request was aborted.
async function judge(asked: ReturnType<typeof put>): Promise<Validation | undefined> {
  try {
    const refusal = await asked;
    return refusal ? { state: 'refused', refusal } : { state: 'accepted' };
  } catch {
    return undefined;
  }
}
