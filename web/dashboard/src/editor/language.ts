import { useState } from 'react';
import { type Fault, findFault, format } from './json';

export type Language = 'json' | 'yaml';

/** The text that the user edits, in one of two languages; the value itself is always JSON. */
export interface Edited {
  readonly language: Language;
  readonly text: string;
  readonly fault: Fault | undefined;
  change(text: string): void;
  choose(language: Language): void;
}

// A chunk of its own: most users never need it.
const load = () => import('./yaml');

type YAML = Awaited<ReturnType<typeof load>>;

/** A text in YAML, and the JSON that it became. */
interface Converted {
  readonly text: string;
  readonly json: string;
  readonly fault?: Fault | undefined;
}

/** Returns the text of a value to edit. setJSON is called with the JSON that it means. */
export function useLanguage(json: string, setJSON: (json: string) => void): Edited {
  const [yaml, setYAML] = useState<YAML>();
  const [converted, setConverted] = useState<Converted>();
  const [refused, setRefused] = useState<Converted>(); // the JSON that is none in YAML
  const inYAML = yaml !== undefined && converted !== undefined;

  // The value was changed elsewhere: loaded again, for instance.
  if (inYAML && converted.json !== json && !converted.fault) {
    const text = yaml.toYAML(json);
    setConverted(typeof text === 'string' ? { text, json } : undefined);
  }

  function change(text: string): void {
    if (!inYAML) return setJSON(text);
    const found = yaml.fromYAML(text);
    if (!('json' in found)) return setConverted({ text, json, fault: found });
    const laid = format(found.json);
    setConverted({ text, json: laid });
    setJSON(laid);
  }

  async function choose(language: Language): Promise<void> {
    if (language === 'json') return setConverted(undefined);
    const module = await load();
    const text = json === '' ? '' : module.toYAML(json);
    setYAML(() => module);
    if (typeof text === 'string') setConverted({ text, json });
    else setRefused({ text: json, json, fault: text });
  }

  const fault = json === '' ? undefined : (findFault(json) ?? (refused?.json === json ? refused.fault : undefined));
  return inYAML
    ? { language: 'yaml', text: converted.text, fault: converted.fault, change, choose }
    : { language: 'json', text: json, fault, change, choose: (language) => void choose(language) };
}
