import { RefusedError } from './errors.js';
import type { Problem } from './protocol.js';
import type { Transport } from './transport.js';

/** From a tab to the hub: a stream that it wants, or wants no longer, or has heard the heartbeat of. */
export interface Ask {
  readonly stream: number;
  /** `end`, `alive`, or what is wanted: `watch=a&watch=b&prefix.b=…`. */
  readonly query: string;
}

/** From the hub to a tab, of one stream: events that belong together, or why there are none, or the heartbeat. */
export interface Tell {
  readonly stream: number;
  readonly events?: readonly string[];
  readonly id?: string;
  readonly refused?: { readonly status: number; readonly problem: Problem | undefined };
}

/**
 * Reads streams from a hub in a SharedWorker, so that all tabs of a browser share
 * one connection: `watch(url, { transport: sharedTransport(worker.port) })`.
 */
export function sharedTransport(port: MessagePort): Transport {
  let streams = 0;
  return {
    hearsHeartbeat: true,
    read({ url, signal }, receiver) {
      return new Promise((_, reject) => {
        const stream = ++streams;
        const take = ({ data }: MessageEvent<Tell>) => {
          if (data.stream !== stream) return;
          receiver.alive();
          if (data.refused) return end(new RefusedError(data.refused.status, data.refused.problem, undefined));
          if (!data.events) return ask(port, { stream, query: 'alive' });
          data.events.forEach((event) => receiver.event(event));
          if (data.id) receiver.id(data.id);
          receiver.flush();
        };
        const end = (reason: unknown) => {
          port.removeEventListener('message', take as EventListener);
          ask(port, { stream, query: 'end' });
          reject(reason);
        };
        signal.addEventListener('abort', () => end(signal.reason));
        port.addEventListener('message', take as EventListener);
        port.start();
        ask(port, { stream, query: url.slice(url.indexOf('?') + 1) });
      });
    },
  };
}

const ask = (port: MessagePort, message: Ask) => port.postMessage(message);
