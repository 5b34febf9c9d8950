import { useEffect, useRef, useState } from 'react';
import { put, type Refusal, type Target } from './resource';

/** What the gateway says of a text that is not saved yet. */
export interface Verdict {
  readonly state: 'none' | 'asking' | 'accepted' | 'refused';
  readonly refusal?: Refusal;
}

const none: Verdict = { state: 'none' };

// Nobody wants a word about what they are in the middle of typing.
const quietMs = 500;

/**
 * Asks the gateway whether it would take the text, once the typing stopped, as
 * long as it is ready to be asked about. The function that is returned asks at once.
 */
export function useVerdict({ watch, key, key_encoding }: Target, text: string, revision: string | undefined, ready: boolean): [Verdict, () => void] {
  const [verdict, setVerdict] = useState(none);
  const ask = useRef(() => {});
  useEffect(() => {
    setVerdict(none);
    if (!ready) return;
    const ended = new AbortController();
    ask.current = () => {
      clearTimeout(timer);
      setVerdict({ state: 'asking' });
      const target = { watch, key, ...(key_encoding && { key_encoding }) };
      void judge(put(target, text, { revision, validateOnly: true, signal: ended.signal })).then((found) => found && setVerdict(found));
    };
    const timer = setTimeout(() => ask.current(), quietMs);
    return () => {
      ask.current = () => {};
      clearTimeout(timer);
      ended.abort();
    };
  }, [watch, key, key_encoding, text, revision, ready]);
  return [verdict, () => ask.current()];
}

// undefined: the question was taken back.
async function judge(asked: ReturnType<typeof put>): Promise<Verdict | undefined> {
  try {
    const refusal = await asked;
    return refusal ? { state: 'refused', refusal } : { state: 'accepted' };
  } catch {
    return undefined;
  }
}
