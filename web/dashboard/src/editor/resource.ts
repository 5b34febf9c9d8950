import type { Resource } from '@watchtide/client';
import { at } from '../gateway/base';
import { refusal } from '../gateway/refusal';
import { ask as askGateway } from '../gateway/session';
import { member } from './json';

/** Identifies a resource of a watch, which may not exist. */
export interface Target extends Pick<Resource, 'key' | 'key_encoding'> {
  readonly watch: string;
}

/** A resource at the gateway. Its value is text, to keep every digit. */
export interface Loaded {
  readonly revision: string;
  readonly text: string;
}

/** Why a request failed; status is 0 if the gateway did not answer. */
export interface Refusal {
  readonly status: number;
  readonly reason: string;
}

/** undefined for success. */
export type Outcome = Refusal | undefined;

/** Reports whether another user has changed the resource meanwhile. */
export const isConflict = (outcome: Outcome) => outcome?.status === 412;

/** Loads a resource; undefined if it does not exist. */
export async function load(target: Target, signal: AbortSignal): Promise<Loaded | Refusal | undefined> {
  const response = await ask(target, { signal, cache: 'no-store' });
  if (!(response instanceof Response)) return response;
  if (response.status === 404) return undefined;
  if (!response.ok) return { status: response.status, reason: await refusal(response) };
  const text = await response.text();
  const { revision } = JSON.parse(text) as Resource;
  return { revision, text: member(text, 'value') ?? 'null' };
}

/** The conditions of a write: the expected revision (undefined: the resource must not exist), and whether to validate only. */
export interface Intent {
  readonly revision: string | undefined;
  readonly validateOnly?: boolean;
  readonly signal: AbortSignal;
}

/** Puts a value, sent verbatim. */
export const put = (target: Target, text: string, intent: Intent): Promise<Outcome> => write(target, { method: 'PUT', body: text }, intent);

/** Deletes the resource. */
export const remove = (target: Target, intent: Intent): Promise<Outcome> => write(target, { method: 'DELETE' }, intent);

async function write(target: Target, request: RequestInit, { revision, validateOnly, signal }: Intent): Promise<Outcome> {
  const condition: Record<string, string> = revision === undefined ? { 'If-None-Match': '*' } : { 'If-Match': `"${revision}"` };
  const headers = request.body === undefined ? condition : { ...condition, 'Content-Type': 'application/json' };
  const response = await ask(target, { ...request, headers, signal }, validateOnly ? 'validate_only=true' : '');
  if (!(response instanceof Response)) return response;
  return response.ok ? undefined : { status: response.status, reason: await refusal(response) };
}

// An aborted request throws, since its result is no longer needed.
async function ask(target: Target, request: RequestInit, query = ''): Promise<Response | Refusal> {
  try {
    return await askGateway(address(target, query), request);
  } catch (error) {
    request.signal?.throwIfAborted();
    return { status: 0, reason: `the gateway does not answer (${error instanceof Error ? error.message : String(error)})` };
  }
}

/** Returns the URL of a resource. */
export function address({ watch, key, key_encoding }: Target, query = ''): URL {
  // In a URL these two keys mean a relative path, even if they are escaped.
  const dots = key === '.' || key === '..';
  const encoding = dots ? 'base64' : key_encoding;
  const url = at(`v1/watches/${encodeURIComponent(watch)}/resources/${encodeURIComponent(dots ? btoa(key) : key)}`);
  url.search = [encoding && `key_encoding=${encoding}`, query].filter(Boolean).join('&');
  return url;
}
