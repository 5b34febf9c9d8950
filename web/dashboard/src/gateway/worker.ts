import { base } from './base';
import script from './tide.worker.ts?worker&url';

/** Creates the worker that holds the connection of all tabs, for `watchShared`. */
export function sharedWorker(name: string): SharedWorker {
  return new SharedWorker(trusted(script), { type: 'module', name });
}

/** Returns the name of the worker of a user: the URL of the gateway, and the tag of the user's session if there are sessions. */
export const nameOf = (tag: string | undefined): string => (tag === undefined ? base.href : `${base.href}#${tag}`);

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

// The Content Security Policy does not accept a string as the URL of a script, and
// names this policy, which trusts that one file only. Firefox and Safari may not
// support it.
function trusted(url: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = types?.createPolicy('watchtide-worker', { createScriptURL: only });
  return (policy?.createScriptURL(url) ?? url) as string;
}

function only(url: string): string {
  if (url !== script) throw new TypeError(`${url} is not the dashboard's worker`);
  return url;
}
