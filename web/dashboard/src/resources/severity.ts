/** How serious the word of a state is. */
export type Severity = 'bad' | 'warn' | 'ok' | 'idle';

const words: Readonly<Record<Severity, string>> = {
  bad: 'critical crit error err failed failure failing fatal down dead unhealthy unreachable crashed crashloopbackoff lost offline alert emergency outage broken refused rejected red high severe oomkilled evicted imagepullbackoff errimagepull notready',
  warn: 'warning warn degraded unstable flapping slow stale late retrying throttled medium yellow amber orange maint maintenance draining terminating unknown paused backoff partial expired',
  ok: 'passing pass passed ok okay up ready running healthy active online green good success succeeded successful complete completed available bound true alive serving in_sync low normal done established',
  idle: 'idle inactive disabled stopped none pending queued waiting starting initializing created new scheduled suspended skipped cancelled canceled closed sleeping off notice info debug',
};

const severities = new Map<string, Severity>(
  Object.entries(words).flatMap(([severity, list]) => list.split(' ').map((word) => [word, severity as Severity] as const)),
);

/** Returns how serious a well-known word is, whatever its case; undefined for any other. */
export const severityOf = (word: string): Severity | undefined => severities.get(word.toLowerCase());

export const hues = 8;

/** Returns the number of the hue of any other word: always the same for a word. */
export function hueOf(word: string): number {
  let hash = 2166136261;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 16777619);
  return ((hash ^ (hash >>> 15)) >>> 0) % hues;
}
