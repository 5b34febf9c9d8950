/**
 * Speaks the protocol for one watch, and accepts only the valid token: the gateway
 * itself leaves tokens to the proxy in front of it.
 */
export class Gatekeeper {
  /** The token and the position of each request. */
  requests = [];
  valid = 'token-1';
  #streams = new Set();

  answer = (request, response) => {
    if (!request.url.startsWith('/v1/events')) return response.writeHead(404).end();
    const token = request.headers.authorization?.replace('Bearer ', '');
    this.requests.push({ token, position: request.headers['last-event-id'] });
    if (token !== this.valid) return refuse(response);
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8', 'Cache-Control': 'no-store' });
    this.#streams.add(response);
    response.on('close', () => this.#streams.delete(response));
    this.#begin(response, request.headers['last-event-id']);
  };

  /** Makes another token the valid one; open streams receive a goodbye. */
  expire(next) {
    this.valid = next;
    for (const stream of this.#streams) {
      say(stream, { type: 'goodbye', reason: 'token_expired', retry_ms: 10 });
      stream.end();
    }
  }

  #begin(stream, position) {
    const watch = 'secrets';
    const resumed = position === 'secrets@a-1';
    say(stream, { type: 'hello', heartbeat_ms: 15_000, watches: [{ watch, mode: resumed ? 'resume' : 'snapshot' }] });
    if (!resumed) {
      say(stream, { type: 'reset', watch, reason: 'initial' });
      say(stream, { type: 'upsert', watch, key: 'a', revision: '1', value: 'before' });
      return say(stream, { type: 'end_of_snapshot', watch, revision: '1', count: 1 }, 'secrets@a-1');
    }
    say(stream, { type: 'upsert', watch, key: 'b', revision: '2', value: 'after' });
    say(stream, { type: 'end_of_snapshot', watch, revision: '2', count: 2, resumed: true }, 'secrets@a-2');
  }
}

function refuse(response) {
  const problem = { type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'the token is not valid' };
  response.writeHead(401, { 'Content-Type': 'application/problem+json' }).end(JSON.stringify(problem));
}

function say(stream, event, id) {
  stream.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n${id ? `id: ${id}\n` : ''}\n`);
}
