// A function of the page, such as getToken, may never settle.
const limitMs = 10_000;

/** Settles as the answer does, or rejects after ten seconds or when the signal aborts. name is that of the function that was asked. */
export async function limited<T>(name: string, answer: T | PromiseLike<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort);
    timer = setTimeout(() => reject(new Error(`${name} did not answer for 10 s`)), limitMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
