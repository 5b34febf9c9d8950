import type { Resource } from '@watchtide/client';
import { refusal } from '../gateway/answer';
import { at } from '../gateway/base';
import { member } from './json';

/** A resource of a watch, whether it is there or not. */
export interface Target extends Pick<Resource, 'key' | 'key_encoding'> {
  readonly watch: string;
}

/** A resource as the gateway has it: its value is text, with every digit. */
export interface Loaded {
  readonly revision: string;
  readonly text: string;
}

/** Why the gateway did not do what it was asked for; status is 0 if it did not answer. */
export interface Refusal {
  readonly status: number;
  readonly reason: string;
}

/** undefined if it was done. */
export type Outcome = Refusal | undefined;

/** Whether somebody else was faster. */
export const isConflict = (outcome: Outcome) => outcome?.status === 412;

/** What there is now: undefined if the resource is not there. */
export async function load(target: Target, signal: AbortSignal): Promise<Loaded | Refusal | undefined> {
  const response = await ask(target, { signal, cache: 'no-store' });
  if (!(response instanceof Response)) return response;
  if (response.status === 404) return undefined;
  if (!response.ok) return { status: response.status, reason: await refusal(response) };
  const text = await response.text();
  const { revision } = JSON.parse(text) as Resource;
  return { revision, text: member(text, 'value') ?? 'null' };
}

/** How a write is meant: on which revision (undefined: on none, as a new resource), and whether it is only a question. */
export interface Intent {
  readonly revision: string | undefined;
  readonly validateOnly?: boolean;
  readonly signal: AbortSignal;
}

/** Puts a value, which is sent as it is written. */
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

// A request that was taken back throws, since there is nobody left to tell.
async function ask(target: Target, request: RequestInit, query = ''): Promise<Response | Refusal> {
  try {
    return await fetch(address(target, query), request);
  } catch (error) {
    request.signal?.throwIfAborted();
    return { status: 0, reason: `the gateway does not answer (${error instanceof Error ? error.message : String(error)})` };
  }
}

/** The URL of a resource. */
export function address({ watch, key, key_encoding }: Target, query = ''): URL {
  // URLs take a step up, or none, for these two keys, however they are escaped.
  const dots = key === '.' || key === '..';
  const encoding = dots ? 'base64' : key_encoding;
  const url = at(`v1/watches/${encodeURIComponent(watch)}/resources/${encodeURIComponent(dots ? btoa(key) : key)}`);
  url.search = [encoding && `key_encoding=${encoding}`, query].filter(Boolean).join('&');
  return url;
}
