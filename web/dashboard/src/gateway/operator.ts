import { at } from './base';
import { tag } from './session';

// For so long an answer counts: roles change.
const keptMs = 60_000;

let asked: Promise<boolean> | undefined;
let askedAt = 0;
let of: string | undefined; // the user who asked

/**
 * Reports whether the gateway tells this user what is for operators. A page that is only for
 * operators could find out by asking for it, but then the browser would log an error.
 */
export function isOperator(): Promise<boolean> {
  if (!asked || of !== tag() || Date.now() - askedAt > keptMs) {
    of = tag();
    askedAt = Date.now();
    asked = ask().catch(() => {
      asked = undefined; // the gateway does not answer: the next one asks again
      return false;
    });
  }
  return asked;
}

// Only operators are told the name of the process.
async function ask(): Promise<boolean> {
  const response = await fetch(at('healthz'), { cache: 'no-store', signal: AbortSignal.timeout(10_000) });
  return /^instance: /m.test(await response.text());
}
