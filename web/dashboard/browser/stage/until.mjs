/** The default timeout, in ms. */
export const patience = 20_000;

/**
 * Polls until the result is truthy, and returns it; for conditions without an event,
 * such as a counter of a server.
 */
export async function until(what, ask, limit = patience) {
  const end = Date.now() + limit;
  let answer;
  while (!(answer = await ask())) {
    if (Date.now() > end) throw new Error(`waited ${limit} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return answer;
}
