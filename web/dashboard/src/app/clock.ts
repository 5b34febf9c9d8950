import { useSyncExternalStore } from 'react';

// One clock for all components, so that they tick together. It stops while none is
// shown.
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** Returns Date.now(), updated every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, 1000);
  tick();
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

// A hidden page requests nothing, so everything would seem silent when it is shown
// again.
function tick(): void {
  if (document.hidden) return;
  const next = Date.now();
  if (Math.floor(next / 1000) === Math.floor(now / 1000)) return;
  now = next;
  for (const listener of listeners) listener();
}
