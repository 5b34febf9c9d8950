/** How long anything may take, unless it is known better, in ms. */
export const patience = 20_000;

/**
 * Asks until the answer is truthy, and returns it. What nobody announces, such as
 * a count that a server keeps, can only be asked for.
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
