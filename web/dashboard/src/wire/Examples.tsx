import { useState } from 'react';
import { copy } from '../app/clipboard';
import { clientExample, curlLine, eventSourceExample } from './examples';
import type { StreamRequest } from './request';

/** Shows the request as a shell command and as programs, ready to copy. */
export function Examples({ request }: { request: StreamRequest }) {
  const [announced, setAnnounced] = useState('');
  const copyExample = async (name: string, text: string) => {
    const done = await copy(text);
    setAnnounced(done ? `${name} copied` : 'The browser did not allow copying: select the text instead');
  };
  const examples = [
    ['curl', curlLine(request)],
    ['EventSource', eventSourceExample(request)],
    ['client.js', clientExample(request)],
  ] as const;
  return (
    <section className="examples" aria-label="The same stream in your own code">
      <div className="bar">
        <h3>The same stream in your own code</h3>
        <span role="status" className="soft">
          {announced}
        </span>
      </div>
      {examples.map(([name, text]) => (
        <figure key={name} className="card" data-example={name}>
          <figcaption className="bar">
            <code>{name}</code>
            <button type="button" className="push" aria-label={`Copy the ${name} example`} onClick={() => void copyExample(name, text)}>
              Copy
            </button>
          </figcaption>
          <pre tabIndex={0} aria-label={name}>
            {text}
          </pre>
        </figure>
      ))}
    </section>
  );
}
