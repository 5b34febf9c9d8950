import { vi } from 'vitest';
import { Exchange } from './server.js';

/** Whom a credential names, and when it ends. */
export interface User {
  readonly tag: string;
  readonly expires?: number;
}

/** A gateway that asks for credentials: answers what is about sessions, and keeps the requests for streams. */
export class Gateway {
  readonly streams: Exchange[] = [];
  readonly log: string[] = [];
  readonly tokens: Record<string, User> = {};
  readonly open: Set<string> = new Set(); // names of streams that can be renewed
  cookie: User | undefined;
  anonymous = false; // who has no credential may see something too
  hold = false; // GET /v1/session is not answered yet
  #held: Array<() => void> = [];

  constructor() {
    vi.stubGlobal(
      'fetch',
      (url: string, init: RequestInit) =>
        new Promise<Response>((resolve, reject) => {
          const exchange = new Exchange(new URL(url), new Headers(init.headers), init.signal as AbortSignal, [resolve, reject]);
          const { pathname } = exchange.url;
          if (pathname.endsWith('/v1/events')) return void this.streams.push(exchange);
          this.log.push(`${init.method} ${pathname.slice(pathname.indexOf('/v1/') + 4)} ${this.#token(exchange)}`.trim());
          if (init.redirect !== 'error') throw new Error('a redirect would be followed');
          const answer = () => this.#answer(init.method!, exchange, init.body as string | undefined);
          this.hold && init.method === 'GET' ? this.#held.push(answer) : answer();
        }),
    );
  }

  get last(): Exchange {
    return this.streams.at(-1)!;
  }

  /** Answers the requests that were held. */
  release(): void {
    this.hold = false;
    this.#held.splice(0).forEach((answer) => answer());
  }

  #token({ headers }: Exchange): string {
    return headers.get('Authorization')?.replace(/^Bearer /, '') ?? '';
  }

  #user(exchange: Exchange): User | undefined {
    const token = this.#token(exchange);
    const user = token ? this.tokens[token] : this.cookie;
    return user?.expires !== undefined && user.expires <= Date.now() ? undefined : user;
  }

  #answer(method: string, exchange: Exchange, body: string | undefined): void {
    const path = exchange.url.pathname.split('/v1/')[1]!;
    const user = this.#user(exchange);
    if (!user && this.anonymous && method === 'GET')
      return exchange.answer(Response.json({ name: '', issuer: '', mechanism: 'anonymous' }));
    if (!user) return exchange.refuse(401);
    if (path === 'tickets')
      return exchange.answer(Response.json({ ticket: `for ${JSON.parse(body!).watches} of ${user.tag}`, expires: '' }));
    if (path.startsWith('streams/'))
      return this.open.has(path.slice(8)) ? exchange.answer(new Response(null, { status: 204 })) : exchange.refuse(404);
    if (method === 'GET')
      return exchange.answer(
        Response.json({
          name: user.tag,
          issuer: '',
          mechanism: 'jwt',
          tag: user.tag,
          ...(user.expires && { expires: new Date(user.expires).toISOString() }),
        }),
      );
    this.cookie = method === 'POST' ? user : undefined;
    exchange.answer(new Response(null, { status: 204 }));
  }
}
