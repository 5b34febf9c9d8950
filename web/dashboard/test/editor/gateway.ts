import type { Resource, Store } from '@watchtide/client';

/** A gateway with one writable watch, as far as the editor needs it. Values are kept as text. */
export class FakeGateway {
  readonly asked: string[] = [];
  readonly resources = new Map<string, { revision: number; text: string }>();
  revision = 0;
  /** Replaces the response, unless it returns undefined. */
  refuse: (method: string, url: URL) => Response | undefined = () => undefined;

  write(key: string, text: string): string {
    this.resources.set(key, { revision: ++this.revision, text });
    return String(this.revision);
  }

  readonly fetch = async (input: URL | string, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input);
    const { method = 'GET', signal } = init;
    const headers = new Headers(init.headers);
    const condition = headers.get('If-Match') ?? headers.get('If-None-Match') ?? '';
    this.asked.push([method, url.pathname + url.search, condition, init.body ?? ''].join(' ').trim());
    await undefined;
    signal?.throwIfAborted();
    return this.refuse(method, url) ?? this.#answer(method, url, condition, String(init.body));
  };

  #answer(method: string, url: URL, condition: string, body: string): Response {
    const written = decodeURIComponent(url.pathname.replace(/^.*\/resources\//, ''));
    const key = url.searchParams.get('key_encoding') ? atob(written) : written;
    const found = this.resources.get(key);
    if (method === 'GET')
      return found
        ? new Response(`{"key":${JSON.stringify(key)},"revision":"${found.revision}","value":${found.text}}`)
        : problem(404, 'no such key');
    const wanted = condition === '*' ? undefined : condition.replaceAll('"', '');
    if (wanted !== (found && String(found.revision)))
      return problem(412, `key ${key} is at revision ${found?.revision ?? 'none'}, ${wanted ?? 'none'} was expected`);
    if (url.searchParams.has('validate_only')) return new Response('{}');
    if (method === 'DELETE') this.resources.delete(key);
    else this.write(key, body);
    return new Response('{}');
  }
}

export function problem(status: number, detail: string): Response {
  return new Response(JSON.stringify({ type: 'about:blank', title: 'No', status, detail }), { status });
}

/** A store whose view is set by the test. */
export class FakeStore {
  #listener: (view: unknown) => void = () => {};
  #view = { resources: new Map<string, Resource>(), revision: '' };

  show(revision: string, resources: Record<string, string>): void {
    const entries = Object.entries(resources).map(([key, at]) => [key, { key, revision: at, value: null }] as const);
    this.#view = { resources: new Map(entries), revision };
    this.#listener(this.#view);
  }

  subscribe(listener: (view: unknown) => void): () => void {
    this.#listener = listener;
    listener(this.#view);
    return () => {
      this.#listener = () => {};
    };
  }

  get store(): Store<unknown> {
    return this as unknown as Store<unknown>;
  }
}
