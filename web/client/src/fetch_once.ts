/** Fetches what no redirect could take elsewhere, with the headers of the page. If there is no answer, the error says which other cause it may have. */
export async function fetchOnce(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, cache: 'no-store', redirect: 'error' });
  } catch (error) {
    throw error instanceof TypeError ? explained(error, url) : error;
  }
}

// A browser does not tell a page whether another origin was not reached, or has not allowed the page.
function explained(error: TypeError, url: string): TypeError {
  const gateway = otherOrigin(url);
  if (!gateway) return error;
  const origin = globalThis.location.origin;
  return new TypeError(`${error.message}: no answer from ${gateway}, or http.allowed_origins of the gateway lacks ${origin}`, {
    cause: error,
  });
}

/** Returns the origin of a URL if it is not that of the page. Programs without a page have none. */
export function otherOrigin(url: string): string | undefined {
  const [origin] = /^https?:\/\/[^/?#]+/.exec(url) ?? [];
  const page = globalThis.location?.origin;
  return page && origin !== page ? origin : undefined;
}
