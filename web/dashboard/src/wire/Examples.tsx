import { useState } from 'react';
import { copy } from './clipboard';
import { clientExample, curlLine, eventSourceExample } from './examples';
import type { Ask } from './request';

/** What is asked for above, as a line for a shell and as programs, ready to copy. */
export function Examples({ ask }: { ask: Ask }) {
  const [said, setSaid] = useState('');
  const take = async (name: string, text: string) => {
    const done = await copy(text);
    setSaid(done ? `${name} copied` : 'The browser did not allow copying: select the text instead');
  };
  const examples = [
    ['curl', curlLine(ask)],
    ['EventSource', eventSourceExample(ask)],
    ['@watchtide/client', clientExample(ask)],
  ] as const;
  return (
    <section className="examples" aria-label="The same stream in your own code">
      <div className="bar"><h3>The same stream in your own code</h3><span role="status" className="soft">{said}</span></div>
      {examples.map(([name, text]) => (
        <figure key={name} className="card" data-example={name}>
          <figcaption className="bar"><code>{name}</code><button type="button" className="push" aria-label={`Copy the ${name} example`} onClick={() => void take(name, text)}>Copy</button></figcaption>
          <pre tabIndex={0} aria-label={name}>{text}</pre>
        </figure>
      ))}
    </section>
  );
}
