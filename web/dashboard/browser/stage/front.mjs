import { request as ask } from 'node:http';

/**
 * Stands in front of gateways, as a load balancer does, and records the requests. Its
 * handler, answer, is for a Site.
 */
export class Front {
  /** The requests below /v1/, in order: method, path, position, the gateway, and the status of its answer. */
  requests = [];
  /** The streams that say only when to come back, at the earliest in 30 s: their text as it came from the gateway, and their path. */
  turnedAway = [];
  /** What a browser is told in place of such a time, in ms. */
  shorter = 200;

  #open = new Set(); // answers

  /** choose returns the gateway for a request. */
  constructor(choose) {
    this.choose = choose;
  }

  /** Returns the requests with a method, and a path that begins so. */
  asked = (method, path) => this.requests.filter((request) => request.method === method && request.path.startsWith(path));

  /** Cuts off all answers that are not complete. */
  cut() {
    for (const response of this.#open) response.destroy();
  }

  answer = (request, response) => {
    const { method, url, headers } = request;
    const gateway = this.choose(request);
    const position = headers['last-event-id'] ?? new URL(url, gateway.origin).searchParams.get('last_event_id') ?? '';
    const recorded = { method, path: url, position, gateway, status: 0 };
    if (url.startsWith('/v1/')) this.requests.push(recorded);
    const forwarded = ask(gateway.origin + url, { method, headers, agent: false }, (answer) => {
      recorded.status = answer.statusCode;
      response.writeHead(answer.statusCode, answer.headers);
      response.flushHeaders();
      answer.on('data', (data) => response.write(this.#shortened(url, data)));
      answer.on('end', () => response.end());
      answer.on('error', () => response.destroy());
    });
    forwarded.on('error', () => response.destroy());
    this.#open.add(response);
    response.on('close', () => {
      this.#open.delete(response);
      forwarded.destroy();
    });
    request.pipe(forwarded);
  };

  #shortened(path, data) {
    const text = data.toString('latin1');
    if (!/^retry: \d{5,}$/m.test(text)) return data;
    this.turnedAway.push({ path, text });
    return Buffer.from(text.replace(/(retry: |"retry_ms":)\d{5,}/g, `$1${this.shorter}`), 'latin1');
  }
}
