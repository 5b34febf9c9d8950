import { useEffect, useRef } from 'react';
import { format } from './json';
import type { Loaded } from './resource';

interface Props {
  /** undefined: the resource is gone. */
  loaded: Loaded | undefined;
  onLoad?(loaded: Loaded): void;
  onOverwrite(): void;
  overwrite: string;
}

/** The value that somebody else wrote meanwhile, and what can be done about it. */
export function Newer({ loaded, onLoad, onOverwrite, overwrite }: Props) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => { section.current?.focus(); }, []); // the button that asked for it may not be there any more
  return (
    <section ref={section} tabIndex={-1} className="newer" aria-label="The newer value">
      <h3>{loaded ? `In the gateway: revision ${loaded.revision}` : 'In the gateway: deleted'}</h3>
      {loaded && <pre tabIndex={0} aria-label="The newer value">{format(loaded.text)}</pre>}
      <div className="bar">
        {loaded && onLoad && <button type="button" onClick={() => onLoad(loaded)}>Load it and discard my text</button>}
        <button type="button" className="danger" onClick={onOverwrite}>{overwrite}</button>
      </div>
    </section>
  );
}
