import { ElectedTransport } from './leader_transport.js';
import { Hub, type HubOptions } from './hub.js';
import { dialect } from './port.js';
import { sharedTransport } from './port_transport.js';
import type { Transport } from './transport.js';
import { watch, type WatchOptions, type Watches } from './watch.js';
import { Ways, type Way } from './fallback_transport.js';

export interface SharedOptions<Name extends string = string> extends Omit<WatchOptions<Name>, 'transport'> {
  /**
   * Makes the SharedWorker in which `serveTabs` runs. It is the page that makes it,
   * for with Trusted Types the URL of a script must come from a policy of the page.
   */
  readonly worker?: () => SharedWorker;
  /** Tabs of the same name share, where there is no SharedWorker; the URL unless set. */
  readonly name?: string;
}

/**
 * Follows watches as `watch` does, over one connection for all tabs of the browser.
 * It is that of the worker; where there is none, or it does not answer, that of one
 * of the tabs; and where there are no Web Locks either, each tab has its own.
 *
 * getToken, headers and credentials are for a connection of this tab: those of a
 * worker are given to `serveTabs`.
 */
export function watchShared<Values = Record<string, unknown>>(
  url: string | URL,
  options: SharedOptions<keyof NoInfer<Values> & string> = {},
): Watches<Values> {
  const { worker, name = String(url), getToken, headers, credentials, ...tab } = options;
  const connection: HubOptions = { ...(getToken && { getToken }), ...(headers && { headers }), ...(credentials && { credentials }) };
  const newHub = () => new Hub(url, connection);
  const ways: Way[] = [];
  if (worker && 'SharedWorker' in globalThis) ways.push((failed) => workerTransport(worker(), failed));
  if (globalThis.navigator?.locks) ways.push((failed) => new ElectedTransport(`watchtide ${dialect} ${name}`, newHub, failed));
  if (ways.length === 0) return watch<Values>(url, { ...tab, ...connection });
  return watch<Values>(url, { ...tab, transport: new Ways([...ways, () => ownTransport(newHub())]) });
}

/** In a SharedWorker: serves the tabs that come, from one connection to the gateway at url. */
export function serveTabs(url: string | URL, options?: HubOptions): void {
  const hub = new Hub(url, options);
  globalThis.addEventListener('connect', (event) => hub.serve((event as MessageEvent).ports[0]!));
}

function workerTransport(worker: SharedWorker, failed: () => void): Transport {
  worker.addEventListener('error', failed); // its script was not found, or not allowed
  return sharedTransport(worker.port, failed);
}

function ownTransport(hub: Hub): Transport {
  const { port1, port2 } = new MessageChannel();
  hub.serve(port1);
  return sharedTransport(port2);
}
