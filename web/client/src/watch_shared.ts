import { type ClosableTransport, FallbackTransport, type TransportFactory } from './fallback_transport.js';
import { Hub, type HubOptions } from './hub.js';
import { InitialSnapshots } from './initial_snapshots.js';
import { LeaderTransport } from './leader_transport.js';
import { dialect } from './port.js';
import { sharedTransport } from './port_transport.js';
import { PrincipalTransport } from './principal_transport.js';
import { checkRate } from './rate_control.js';
import type { WatchSpec } from './spec.js';
import type { Transport } from './transport.js';
import { type Watches, type WatchOptions, watch } from './watch.js';

export interface SharedOptions<Name extends string = string> extends WatchOptions<Name> {
  /**
   * Creates the SharedWorker in which `serveTabs` runs. The page creates it because
   * with Trusted Types the URL of a script must come from a policy of the page.
   */
  readonly worker?: () => SharedWorker;
  /** Without a SharedWorker, tabs with the same name and the same principal share a connection; the URL unless set. */
  readonly name?: string;
  /** The tag of the principal whose data is shown, from `getSession`, or null for a gateway without sessions; the gateway is asked for it before each stream unless set. */
  readonly tag?: string | null;
}

/**
 * Follows watches as `watch` does, over one connection for all tabs of the browser in
 * which the same principal is signed in.
 * The worker holds it; if there is none, or it does not answer, one of the tabs does;
 * and without Web Locks, each tab has its own.
 *
 * getToken, headers, credentials, transport and a fixed maxRate apply to a connection of this tab: those of the
 * worker are passed to `serveTabs`. With autoRate, a tab chooses how often it gets changes from whatever holds the connection.
 */
export function watchShared<Values = Record<string, unknown>>(
  url: string | URL,
  options: SharedOptions<keyof NoInfer<Values> & string> = {},
): Watches<Values> {
  const { worker, name = String(url), tag, getToken, onError, headers, credentials, transport, maxRate, ...rest } = options;
  const connection: HubOptions = {
    ...(getToken && { getToken }),
    ...(onError && { onError }),
    ...(headers && { headers }),
    ...(credentials && { credentials }),
    ...(transport && { transport }),
    ...(typeof maxRate === 'string' && { maxRate }),
  };
  const tab = { ...rest, ...(typeof maxRate === 'function' && { maxRate }) };
  if (connection.maxRate !== undefined) checkRate(connection.maxRate);
  const newHub = () => new Hub(url, connection);
  const hasWorker = worker !== undefined && 'SharedWorker' in globalThis;
  const hasLocks = globalThis.navigator?.locks !== undefined;
  if (!hasWorker && !hasLocks) return watch<Values>(url, { ...tab, ...connection });
  const shared = (tag: string | undefined) => {
    const lock = `watchtide ${dialect} ${name}${tag === undefined ? '' : `#${tag}`}`;
    const transports: TransportFactory[] = [];
    if (hasWorker) transports.push((failed, works) => workerTransport(worker(), failed, works, tag));
    if (hasLocks) transports.push((failed) => new LeaderTransport(lock, newHub, failed, tag));
    return new FallbackTransport([...transports, () => ownTransport(newHub(), tag)]);
  };
  const principal = { ...connection, ...(tag !== undefined && { tag }) };
  const begun = new InitialSnapshots();
  const remember = (spec: WatchSpec) => {
    if (!tab.parse) begun.add(spec); // or else the values are not what the gateway sent
  };
  tab.watches?.forEach(remember);
  const tide = watch<Values>(url, { ...tab, transport: new PrincipalTransport(url, principal, shared, begun) });
  const add: typeof tide.add = (spec) => {
    remember(spec);
    return tide.add(spec);
  };
  return { ...tide, add };
}

/** In a SharedWorker: serves the tabs that connect, over one connection to the gateway at url. */
export function serveTabs(url: string | URL, options?: HubOptions): void {
  const hub = new Hub(url, options);
  globalThis.addEventListener('connect', (event) => hub.serve((event as MessageEvent).ports[0]!));
}

function workerTransport(worker: SharedWorker, failed: () => void, works: () => void, tag: string | undefined): ClosableTransport {
  worker.addEventListener('error', failed); // its script was not found, or not allowed
  return { ...sharedTransport(worker.port, failed, tag, works), close: () => worker.port.close() };
}

function ownTransport(hub: Hub, tag: string | undefined): Transport {
  const { port1, port2 } = new MessageChannel();
  hub.serve(port1);
  return sharedTransport(port2, undefined, tag);
}
