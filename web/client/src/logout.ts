// Tells all that share a connection, in workers and in other tabs, that a session has ended.
const channel = 'watchtide logout';

const absolute = (url: string | URL) => new URL(url, globalThis.location?.href).href.replace(/\/$/, '');

/** Announces that the session at this gateway has ended. */
export function announceLogout(url: string | URL): void {
  if (!('BroadcastChannel' in globalThis)) return;
  const announcements = new BroadcastChannel(channel);
  announcements.postMessage(absolute(url));
  announcements.close();
}

/** Calls run when `endSession` ends a session at this gateway, in this tab or in another one, until the returned function is called. */
export function onLogout(url: string | URL, run: () => void): () => void {
  if (!('BroadcastChannel' in globalThis)) return () => {};
  const announcements = new BroadcastChannel(channel);
  (announcements as { unref?(): void }).unref?.(); // does not keep Node alive
  announcements.addEventListener('message', ({ data }: MessageEvent<string>) => {
    if (data === absolute(url)) run();
  });
  return () => announcements.close();
}
