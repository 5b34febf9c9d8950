import { RefusedError } from './errors.js';
import type { InitialSnapshots } from './initial_snapshots.js';
import { anotherUser, bearer, findSession } from './session.js';
import { limited } from './time_limit.js';
import type { AnswerRequest, Receiver, StreamRequest, Transport } from './transport.js';
import type { WatchOptions } from './watch.js';

export type PrincipalOptions = Pick<WatchOptions, 'getToken' | 'headers' | 'credentials'> & { readonly tag?: string | null };

/**
 * Reads streams that are shared with other tabs of the same principal, and only those:
 * asks the gateway before each one whose credential this is. If it is another principal's by
 * now, the stream is refused. The tag is undefined where there are no sessions.
 */
export class PrincipalTransport implements Transport {
  readonly hearsHeartbeat = true;
  #shared: { readonly tag: string | undefined; readonly transport: Transport } | undefined;

  constructor(
    private readonly url: string | URL,
    private readonly options: PrincipalOptions,
    private readonly create: (tag: string | undefined) => Transport,
    private readonly begun: InitialSnapshots,
  ) {}

  async read(request: StreamRequest, receiver: Receiver): Promise<void> {
    let release = this.#shared?.transport.hold?.();
    try {
      const tag = await this.#identify(request.signal);
      receiver.alive();
      const shared = (this.#shared ??= { tag, transport: this.create(tag) });
      if (shared.tag !== tag) throw anotherUser();
      const reading = shared.transport.read({ ...request, snapshots: this.begun.of(request) }, receiver);
      release?.(); // it has begun
      release = undefined;
      await reading;
    } finally {
      release?.();
    }
  }

  post(request: AnswerRequest): Promise<Response> {
    return this.#shared!.transport.post!(request); // there is one, since it is about a stream
  }

  hurry(): void {
    this.#shared?.transport.hurry?.();
  }

  // A token that is refused may have expired.
  async #identify(signal: AbortSignal): Promise<string | undefined> {
    const { tag, getToken } = this.options;
    if (tag !== undefined) return tag ?? undefined;
    try {
      return await this.#ask(signal, false);
    } catch (error) {
      if (!getToken || !(error instanceof RefusedError) || error.status !== 401) throw error;
      return this.#ask(signal, true);
    }
  }

  async #ask(signal: AbortSignal, expired: boolean): Promise<string | undefined> {
    const { getToken, headers, credentials } = this.options;
    const token = getToken && (await limited('getToken', getToken({ expired }), signal));
    const session = await findSession(this.url, {
      headers: { ...headers, ...(token && bearer(token)) },
      ...(credentials && { credentials }),
      signal,
    });
    return session?.tag;
  }
}
