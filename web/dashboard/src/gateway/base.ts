/** The base URL of the gateway, which is that of the page. */
export const base = new URL('.', document.baseURI);

/** Returns the URL of a path of the gateway; the path has no leading slash. */
export const at = (path: string): URL => new URL(path, base);
