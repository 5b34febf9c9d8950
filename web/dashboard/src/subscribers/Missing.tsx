import { setOptions } from '../app/route';
import '../app/cards.css';

/** Says why the gateway has nothing about subscribers: it was not told to, or there is no such watch. */
export function Missing({ watch, known }: { watch: string; known: boolean }) {
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
      <h3>This gateway does not tell who is connected</h3>
      <p>It is served beside the metrics, which are switched off. In the configuration that the gateway was started with:</p>
      <pre>{'metrics:\n  enabled: true'}</pre>
    </div>
  );
}
