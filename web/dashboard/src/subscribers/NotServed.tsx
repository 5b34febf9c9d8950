import { setOptions } from '../app/route';

interface Props {
  /** What is not served: `the list of subscribers`. */
  readonly what: string;
  readonly watch: string;
  readonly known: boolean;
  /** Shows all watches; by default without the option `watch`. */
  readonly onAll?: () => void;
  /** 403: it is served to others. */
  readonly status: number;
}

const allWatches = () => setOptions({ watch: undefined });

/** Says why the gateway serves no such data: it is only for operators, or there is no such watch. */
export function NotServed({ what, watch, known, onAll = allWatches, status }: Props) {
  if (watch && !known) {
    return (
      <p>
        There is no watch “{watch}”.{' '}
        <button type="button" onClick={onAll}>
          Show all watches
        </button>
      </p>
    );
  }
  if (status === 403) {
    return (
      <div className="card none">
        <h3>You may not see {what}</h3>
        <p>
          Only operators can see this: those who hold the role that <code>operations.role</code> names in the gateway’s configuration.
        </p>
      </div>
    );
  }
  return (
    <div className="card none">
      <h3>This address does not serve {what}</h3>
      <p>
        Only operators can see this. Open the dashboard on the operations listener, which is set in the gateway’s configuration; metrics
        must be enabled:
      </p>
      <pre>{'operations:\n  listen: "127.0.0.1:8081"\nmetrics:\n  enabled: true'}</pre>
    </div>
  );
}
