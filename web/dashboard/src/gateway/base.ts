/** Where the gateway is: where the page came from. */
export const base = new URL('.', document.baseURI);

/** The URL of a path of the gateway, without a slash in front. */
export const at = (path: string): URL => new URL(path, base);
