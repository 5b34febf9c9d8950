import type { Resource } from '@watchtide/client';
import { useEffect, useRef, useState } from 'react';
import { format } from './json';
import { isConflict, type Loaded, load, type Outcome, put, type Refusal, type Target } from './resource';

/** The edited text and its base. */
export interface Draft {
  readonly target: Target;
  readonly text: string;
  /** The base of the text; undefined for a new resource. */
  readonly base: Loaded | undefined;
  /** Closing the dialog would lose something. */
  readonly dirty: boolean;
  /** The text can be edited: the current value has been loaded. */
  readonly begun: boolean;
  readonly saving: boolean;
  /** The reason why the last request failed. */
  readonly refusal: Refusal | undefined;
  /** The value that another user wrote meanwhile, once it is loaded; 'gone' if they deleted it. */
  readonly newer: Loaded | 'gone' | undefined;

  setKey(key: string): void;
  setText(text: string): void;
  /** Loads the current value. */
  loadCurrent(): void;
  /** Bases the draft on the value that another user wrote, with their text or with ours. */
  rebase(text: 'theirs' | 'ours'): void;
  save(): void;
}

/** Returns the draft of a new or changed resource. done is called once it is saved. */
export function useDraft(watch: string, resource: Resource | undefined, done: () => void): Draft {
  const [target, setTarget] = useState<Target>(() => ({ watch, key: '', ...(resource && keyOf(resource)) }));
  const [base, setBase] = useState<Loaded>();
  const [text, setText] = useState('');
  const [saved, setSaved] = useState(''); // the text as it was loaded
  const [begun, setBegun] = useState(!resource);
  const [saving, setSaving] = useState(false);
  const [refusal, setRefusal] = useState<Outcome>();
  const [newer, setNewer] = useState<Draft['newer']>();
  const lifetime = useLifetime();

  function begin(loaded: Loaded): void {
    const laid = format(loaded.text);
    setBegun(true);
    setBase(loaded);
    setText(laid);
    setSaved(laid);
  }

  async function ask(use: (found: Loaded | 'gone') => void): Promise<void> {
    const found = await load(target, lifetime());
    if (found && 'status' in found) setRefusal(found);
    else use(found ?? 'gone');
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: another resource has another dialog
  useEffect(() => {
    if (!resource) return;
    void ask((found) => (found === 'gone' ? setNewer(found) : begin(found))).catch(ignore);
  }, []);

  async function save(): Promise<void> {
    setSaving(true);
    setRefusal(undefined);
    const outcome = await put(target, text, { revision: base?.revision, signal: lifetime() });
    if (!outcome) return done();
    setRefusal(outcome);
    if (isConflict(outcome)) await ask(setNewer);
    setSaving(false);
  }

  function rebase(whose: 'theirs' | 'ours'): void {
    if (newer && newer !== 'gone' && whose === 'theirs') begin(newer);
    else setBase(newer === 'gone' ? undefined : newer);
    setBegun(true);
    setNewer(undefined);
    setRefusal(undefined);
  }

  return {
    target,
    text,
    base,
    dirty: text !== saved || (!resource && !base && target.key !== ''),
    begun,
    saving,
    refusal,
    newer,
    setKey: (key) => setTarget({ watch, key }),
    setText,
    loadCurrent: () => void ask(setNewer).catch(ignore),
    rebase,
    save: () => void save().catch(ignore),
  };
}

const keyOf = ({ key, key_encoding }: Resource) => ({ key, ...(key_encoding && { key_encoding }) });

// Only aborted requests throw: the dialog has been closed.
const ignore = () => {};

// Returns a getter of the signal that aborts when the component is unmounted.
function useLifetime(): () => AbortSignal {
  const ended = useRef(new AbortController());
  useEffect(() => {
    if (ended.current.signal.aborted) ended.current = new AbortController(); // React mounts it twice in development
    return () => ended.current.abort();
  }, []);
  return () => ended.current.signal;
}
