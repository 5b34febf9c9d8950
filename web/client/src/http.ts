import { RefusedError } from './errors.js';
import type { Problem } from './protocol.js';
import { Requester, type RequesterOptions } from './request.js';
import type { Resource } from './resource.js';
import type { Snapshot } from './snapshot.js';
import { parametersOf, type WatchSpec } from './spec.js';

export interface HttpOptions extends RequesterOptions {
  /** Parses the JSON of an answer; `JSON.parse` unless set. */
  readonly parse?: (json: string) => unknown;
  /** Writes a value as JSON; `JSON.stringify` unless set. */
  readonly stringify?: (value: unknown) => string;
}

/** A key as it is in the map of a store, or as it is in a resource. */
export type Key = string | Pick<Resource, 'key' | 'key_encoding'>;

export interface SendOptions {
  /** Ends the request. A write may have happened all the same. */
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends SendOptions {
  /** The revision that the resource must have, or null if it must not exist; any unless set. */
  readonly revision?: string | null | undefined;
  /** Checks the write and returns the same answer, without writing. */
  readonly validateOnly?: boolean | undefined;
}

export interface ListOptions extends SendOptions {
  /** The number of resources of a page, 10,000 at most; 1,000 unless set. */
  readonly pageSize?: number | undefined;
}

/** One page of a listing. All pages have the same revision and position. */
export interface Page<V = unknown> extends Omit<Snapshot<V>, 'since'> {
  readonly watch: string;
  /** The number of resources on all pages. */
  readonly count: number;
}

/**
 * A compare-and-set found another revision: nothing was written. `current` is the
 * resource that was found, null if it does not exist, and undefined if it could not be read.
 */
export class ConflictError<V = unknown> extends RefusedError {
  override readonly name = 'ConflictError';

  constructor(
    problem: Problem | undefined,
    readonly current: Resource<V> | null | undefined,
  ) {
    super(412, problem, undefined);
  }
}

/** The requests for resources of one gateway. All of them reject with a `RefusedError` if the gateway refuses. */
export interface Requests<Values = Record<string, unknown>> {
  /** Returns a resource; undefined if it does not exist, or may not be seen. */
  get<Name extends keyof Values & string>(watch: Name, key: Key, options?: SendOptions): Promise<Resource<Values[Name]> | undefined>;
  /** Returns the pages of a watch, or of a part of it, all at one revision. A listing that takes minutes may end with status 410: begin again. */
  list<Name extends keyof Values & string>(spec: WatchSpec<Name>, options?: ListOptions): AsyncGenerator<Page<Values[Name]>, void, void>;
  /** Returns all pages as one snapshot, for instance for `initial`. A listing that ends with 410 is begun again, twice at most. */
  snapshot<Name extends keyof Values & string>(spec: WatchSpec<Name>, options?: ListOptions): Promise<Snapshot<Values[Name]>>;
  /** Writes a value, and returns the resource as it is stored. Rejects with a `ConflictError` if it does not have the revision. */
  put<Name extends keyof Values & string>(
    watch: Name,
    key: Key,
    value: Values[Name],
    options?: WriteOptions,
  ): Promise<Resource<Values[Name]>>;
  /** Deletes a resource, and returns whether there was one. Rejects with a `ConflictError` if it does not have the revision. */
  delete(watch: keyof Values & string, key: Key, options?: WriteOptions): Promise<boolean>;
}

/**
 * Returns the requests for the gateway at url, which is the same as for `watch`. Values maps the
 * name of each watch to the type of its values.
 */
export const http = <Values = Record<string, unknown>>(url: string | URL, options: HttpOptions = {}): Requests<Values> =>
  new Http(String(url).replace(/\/$/, ''), options) as unknown as Requests<Values>;

const maxListings = 3;

class Http implements Requests {
  readonly #requester: Requester;
  readonly #parse: (json: string) => unknown;
  readonly #stringify: (value: unknown) => string;

  constructor(
    private readonly base: string,
    { parse = JSON.parse, stringify = JSON.stringify, ...options }: HttpOptions,
  ) {
    this.#requester = new Requester(options);
    this.#parse = parse;
    this.#stringify = stringify;
  }

  async get(watch: string, key: Key, { signal }: SendOptions = {}): Promise<Resource | undefined> {
    try {
      return await this.#json<Resource>('GET', this.#resource(watch, key), signal);
    } catch (error) {
      if (error instanceof RefusedError && error.status === 404 && error.problem?.key !== undefined) return undefined;
      throw error;
    }
  }

  async *list(spec: WatchSpec, { pageSize, signal }: ListOptions = {}): AsyncGenerator<Page, void, void> {
    const definition: Exclude<WatchSpec, string> = typeof spec === 'string' ? { watch: spec } : spec;
    const query = new URLSearchParams();
    for (const [name, text] of parametersOf(definition)) query.set(name, text);
    if (pageSize) query.set('page_size', String(pageSize));
    for (;;) {
      const what = definition.by ? 'counts' : 'resources';
      const url = `${this.base}/v1/watches/${encodeURIComponent(definition.watch)}/${what}?${query}`;
      const { next_page_token, ...page } = await this.#json<Page & { next_page_token?: string }>('GET', url, signal);
      yield page;
      if (!next_page_token) return;
      query.set('page_token', next_page_token);
    }
  }

  async snapshot(spec: WatchSpec, options?: ListOptions): Promise<Snapshot> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#snapshot(spec, options);
      } catch (error) {
        if (tries === maxListings || !(error instanceof RefusedError) || error.status !== 410) throw error;
      }
    }
  }

  async #snapshot(spec: WatchSpec, options?: ListOptions): Promise<Snapshot> {
    const since = Date.now();
    const resources: Resource[] = [];
    let first: Page | undefined;
    for await (const page of this.list(spec, options)) {
      first ??= page;
      for (const resource of page.resources) resources.push(resource);
    }
    const { revision, position } = first!;
    return { resources, revision, position, since };
  }

  async put(watch: string, key: Key, value: unknown, options: WriteOptions = {}): Promise<Resource> {
    const body = this.#stringify(value);
    if (body === undefined)
      throw new TypeError(`the value of ${nameOf(key)} is not JSON: want null, a boolean, a number, text, a list or an object`);
    return this.#write<Resource>('PUT', watch, key, options, body);
  }

  async delete(watch: string, key: Key, options: WriteOptions = {}): Promise<boolean> {
    return (await this.#write<{ deleted: boolean }>('DELETE', watch, key, options)).deleted;
  }

  async #write<T>(method: 'PUT' | 'DELETE', watch: string, key: Key, options: WriteOptions, body?: string): Promise<T> {
    const { revision, validateOnly, signal } = options;
    const headers = { ...conditionOf(revision), ...(body !== undefined && { 'Content-Type': 'application/json' }) };
    const url = this.#resource(watch, key, validateOnly ? 'validate_only=true' : '');
    try {
      return await this.#json<T>(method, url, signal, headers, body);
    } catch (error) {
      if (!(error instanceof RefusedError) || error.status !== 412) throw error;
      throw new ConflictError(error.problem, await this.#current(watch, key, signal));
    }
  }

  async #current(watch: string, key: Key, signal: AbortSignal | undefined): Promise<Resource | null | undefined> {
    try {
      return (await this.get(watch, key, { signal })) ?? null;
    } catch {
      return undefined; // the conflict is certain, whatever the gateway answers by now
    }
  }

  async #json<T>(
    method: 'GET' | 'PUT' | 'DELETE',
    url: string,
    signal: AbortSignal | undefined,
    headers: Readonly<Record<string, string>> = {},
    body?: string,
  ): Promise<T> {
    const text = await this.#requester.send({ method, url, headers, signal, ...(body !== undefined && { body }) });
    const answer = this.#parse(text);
    if (typeof answer !== 'object' || answer === null) throw new Error(`${url} does not answer as a gateway does`);
    return answer as T;
  }

  // In a URL, the keys . and .. mean a relative path, even if they are escaped.
  #resource(watch: string, key: Key, query = ''): string {
    const { text, encoded } = partsOf(key);
    const dots = !encoded && (text === '.' || text === '..');
    const all = [(encoded || dots) && 'key_encoding=base64', query].filter(Boolean).join('&');
    return `${this.base}/v1/watches/${encodeURIComponent(watch)}/resources/${encodeURIComponent(dots ? btoa(text) : text)}${all && `?${all}`}`;
  }
}

const conditionOf = (revision: string | null | undefined): Record<string, string> => {
  if (revision === null) return { 'If-None-Match': '*' };
  return revision === undefined ? {} : { 'If-Match': `"${revision}"` };
};

// In a map, a key that is not UTF-8 is in base64, after a lone surrogate.
function partsOf(key: Key): { readonly text: string; readonly encoded: boolean } {
  if (typeof key !== 'string') return { text: key.key, encoded: key.key_encoding !== undefined };
  return key[0] === '\udfff' ? { text: key.slice(1), encoded: true } : { text: key, encoded: false };
}

const nameOf = (key: Key) => JSON.stringify(partsOf(key).text);

export { RefusedError } from './errors.js';
