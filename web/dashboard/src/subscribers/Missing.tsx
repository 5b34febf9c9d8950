import { setOptions } from '../app/route';
import '../app/cards.css';

interface Asked {
  /** What it would tell: `who is connected`. */
  readonly what: string;
  readonly watch: string;
  readonly known: boolean;
}

/** Says why the gateway tells nothing of that kind: it was not told to, or there is no such watch. */
export function Missing({ what, watch, known }: Asked) {
  if (watch && !known) {
    return (
      <p>
        There is no watch “{watch}”.{' '}
        <button type="button" onClick={() => setOptions({ watch: undefined })}>Show all watches</button>
      </p>
    );
  }
  return (
    <div className="card none">
      <h3>This gateway does not tell {what}</h3>
      <p>That is served beside the metrics, which are switched off. In the configuration that the gateway was started with:</p>
      <pre>{'metrics:\n  enabled: true'}</pre>
    </div>
  );
}
