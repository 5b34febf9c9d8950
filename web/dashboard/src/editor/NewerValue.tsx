import { useEffect, useRef } from 'react';
import { ValueText } from '../text/KeyText';
import { format } from './json';
import type { Loaded } from './resource';

interface Props {
  /** undefined: the resource was deleted. */
  loaded: Loaded | undefined;
  onLoad?(loaded: Loaded): void;
  onOverwrite(): void;
  overwrite: string;
}

/** Shows the value that another user wrote meanwhile, and the choices. */
export function NewerValue({ loaded, onLoad, onOverwrite, overwrite }: Props) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    section.current?.focus();
  }, []); // the button that was clicked may be gone
  return (
    <section ref={section} tabIndex={-1} className="newer" aria-label="The newer value">
      <h3>{loaded ? `In the gateway: revision ${loaded.revision}` : 'In the gateway: deleted'}</h3>
      {loaded && (
        <pre tabIndex={0} aria-label="The newer value">
          <ValueText text={format(loaded.text)} />
        </pre>
      )}
      <div className="bar">
        {loaded && onLoad && (
          <button type="button" onClick={() => onLoad(loaded)}>
            Load it and discard my text
          </button>
        )}
        <button type="button" className="danger" onClick={onOverwrite}>
          {overwrite}
        </button>
      </div>
    </section>
  );
}
