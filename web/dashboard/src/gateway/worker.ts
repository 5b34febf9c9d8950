import script from './tide.worker.ts?worker&url';
import { base } from './base';

/** The worker that holds the connection of all tabs, for `watchShared`. */
export function sharedWorker(): SharedWorker {
  return new SharedWorker(trusted(script), { type: 'module', name: base.href });
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): unknown };
}

// The Content Security Policy takes no plain text for the URL of a script, and
// names this policy, which trusts that one file and nothing else. Firefox and
// Safari may not know of it.
function trusted(url: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = types?.createPolicy('watchtide-worker', { createScriptURL: only });
  return (policy?.createScriptURL(url) ?? url) as string;
}

function only(url: string): string {
  if (url !== script) throw new TypeError(`${url} is not the dashboard's worker`);
  return url;
}
