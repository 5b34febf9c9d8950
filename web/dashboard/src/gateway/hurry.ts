// Apart from tide.ts, so that a page that follows no watch does not load the client.
const connections = new Set<() => void>();

/** Calls connect whenever a lost connection should be tried again soon. */
export const onHurry = (connect: () => void): void => void connections.add(connect);

/** Tries lost connections again soon: the gateway has answered, or the user asks for it. */
export function hurry(): void {
  for (const connect of connections) connect();
}
