import { getSession, type Session } from '@watchtide/client/auth';
import type { ListWatchesResponse } from '@watchtide/protocol';
import { useSyncExternalStore } from 'react';
import { at, base } from './base';
import { refusal } from './refusal';

/**
 * The user that the gateway sees. `asking`: not known yet. `locked`: the page may see
 * nothing without a credential; reason says why the former user is not signed in any
 * more.
 */
export type Who =
  | { readonly state: 'asking'; readonly reason: string }
  | { readonly state: 'known'; readonly session: Session; readonly hasSessions: boolean }
  | { readonly state: 'locked'; readonly reason: string };

const nobody: Session = { name: '', issuer: '', mechanism: 'anonymous', tag: '' };

// A gateway that does not answer is asked again, and so is one that has asked for a
// credential: the page around this one may have signed in.
const againMs = 3_000;

// How long a request may take, in milliseconds.
const timeoutMs = 10_000;

let who: Who = { state: 'asking', reason: '' };
const listeners = new Set<() => void>();

/** Returns the user that the gateway sees. */
export const useWho = (): Who => useSyncExternalStore(subscribe, () => who);

/**
 * The tag of the user whose data the page shows: empty for somebody without a credential,
 * undefined where the gateway asks nobody, and before that is known.
 */
export const tag = (): string | undefined => (who.state === 'known' && who.hasSessions ? who.session.tag : undefined);

/** Asks for the user until the gateway answers. Returns a function that stops it. */
export function identify(): () => void {
  const ended = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  async function attempt(): Promise<void> {
    const found = await look(ended.signal);
    if (ended.signal.aborted || isKnown()) return;
    // A locked page may have loaded data of another user before.
    if (who.state === 'locked' && isSomebody(found)) return location.reload();
    if (who.state !== 'locked') become(found);
    if (!isKnown()) timer = setTimeout(attempt, againMs);
  }
  void attempt();
  return () => {
    ended.abort();
    clearTimeout(timer);
  };
}

/**
 * Removes everything from a page that its user leaves: the browser may show it again to
 * another user who goes back. Returns a function that stops this.
 */
export function forgetWhenLeft(): () => void {
  const hide = ({ persisted }: PageTransitionEvent) => {
    if (persisted && tag() !== undefined) become({ state: 'asking', reason: '' });
  };
  const show = ({ persisted }: PageTransitionEvent) => {
    if (persisted && who.state === 'asking') location.reload();
  };
  addEventListener('pagehide', hide);
  addEventListener('pageshow', show);
  return () => {
    removeEventListener('pagehide', hide);
    removeEventListener('pageshow', show);
  };
}

async function look(signal: AbortSignal): Promise<Who> {
  try {
    const response = await fetch(at('v1/watches'), {
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      cache: 'no-store',
    });
    if (response.status === 401) return { state: 'locked', reason: await reasonOf(response) };
    if (!dependsOnCredential(response)) {
      await response.body?.cancel();
      return { state: 'known', session: nobody, hasSessions: false };
    }
    const { watches } = response.ok ? ((await response.json()) as ListWatchesResponse) : { watches: undefined };
    const session = await getSession(base, { signal });
    if (watches?.length === 0 && isAnonymous(session)) return { state: 'locked', reason: '' };
    return { state: 'known', session, hasSessions: true };
  } catch (error) {
    if (isUnauthorized(error)) return { state: 'locked', reason: messageOf(error) };
    return { state: 'asking', reason: messageOf(error) };
  }
}

// Where answers do not depend on the credential, there are no sessions to ask about.
const dependsOnCredential = ({ headers }: Response) => /\bauthorization\b/i.test(headers.get('Vary') ?? '');

// Without a credential there is none that could have been refused.
const reasonOf = async (response: Response) => (/\berror=/.test(response.headers.get('WWW-Authenticate') ?? '') ? refusal(response) : '');

/** Shows only the login, with the reason why the credential is not accepted. */
function lock(reason: string): void {
  if (who.state !== 'locked') become({ state: 'locked', reason });
}

/**
 * Verifies that the gateway still sees the same user; the user may sign out, and another
 * one in, in another tab. If so, the page is loaded again and the promise is never
 * settled, so that nothing of the other user is shown here.
 */
export async function confirm(signal?: AbortSignal | null): Promise<void> {
  const shown = tag();
  if (shown === undefined) return; // there are no sessions
  try {
    if ((await getSession(base, signal ? { signal } : {})).tag === shown) return;
  } catch (error) {
    if (!isUnauthorized(error)) throw error;
    lock(messageOf(error));
    throw error;
  }
  location.reload();
  await new Promise<never>(() => {});
}

/** Like fetch from the gateway, but returns a response only if it is for the user whose data is shown. */
export async function ask(url: URL, init: RequestInit): Promise<Response> {
  if (init.method) await confirm(init.signal); // a write must not be another user's
  const response = await fetch(url, init);
  if (response.status === 401 && tag() === undefined) lock(await reasonOf(response.clone()));
  await confirm(init.signal);
  return response;
}

const isKnown = () => who.state === 'known';

const isAnonymous = ({ mechanism }: Session) => mechanism === 'anonymous';

const isSomebody = (who: Who) => who.state === 'known' && !isAnonymous(who.session);

const isUnauthorized = (error: unknown) => (error as { status?: number } | undefined)?.status === 401;

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

function become(next: Who): void {
  who = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
