/** Returns a unique name. crypto.randomUUID exists only in pages that are served over HTTPS. */
export const uniqueId = (): string => Math.random().toString(36).slice(2);
