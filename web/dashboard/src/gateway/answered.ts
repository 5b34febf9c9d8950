const listeners = new Set<() => void>();

/** Calls listener each time the gateway has answered, and when the user asks to reconnect. */
export const onAnswered = (listener: () => void): void => void listeners.add(listener);

/** The gateway has answered, or may by now: lost connections are tried again soon. */
export function answered(): void {
  for (const listener of listeners) listener();
}
