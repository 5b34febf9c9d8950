/** A name that nothing else has. crypto.randomUUID is only there where the page came by https. */
export const unique = (): string => Math.random().toString(36).slice(2);
