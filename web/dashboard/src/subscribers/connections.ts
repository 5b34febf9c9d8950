import { useTroubles } from '../app/troubles';
import { useAnswer, type Answer } from '../gateway/answer';
import { useSilence } from '../gateway/watches';

/** A stream that is open, as /v1/subscribers has it. */
export interface Subscriber {
  readonly id: string;
  readonly address?: string;
  readonly user_agent?: string;
  readonly transport: string;
  readonly encoding: string;
  readonly since: string;
  readonly watches: readonly string[];
  readonly position?: string;
  readonly events: number;
  readonly bytes: number;
  readonly lag: number;
  readonly skipped: number;
  readonly catching_up: boolean;
}

/** A stream that has ended. */
export interface Departure extends Subscriber {
  readonly left: string;
  readonly reason: string;
}

/** Something that happened to the connection of a watch to its upstream. */
export interface Incident {
  readonly at: string;
  readonly kind: 'reconnect' | 'resync';
  readonly reason: string;
  readonly detail?: string;
  readonly times: number;
  readonly first: string;
}

/** What happened to the connection of a watch to its upstream, by reason, and the newest one by one. */
export interface UpstreamHistory {
  readonly watch: string;
  readonly source: string;
  readonly connected: boolean;
  readonly reconnects: Readonly<Record<string, number>>;
  readonly resyncs: Readonly<Record<string, number>>;
  readonly incidents: readonly Incident[];
}

/** The answer of /v1/subscribers. */
export interface Connections {
  readonly count: number;
  readonly subscribers: readonly Subscriber[];
  readonly left: readonly Departure[];
  readonly left_reasons: Readonly<Record<string, number>>;
  readonly upstreams: readonly UpstreamHistory[];
}

const everyMs = 2000;

/** Who is connected, of one watch or of all (''), renewed every two seconds. */
export function useConnections(watch: string, limit: number): Answer<Connections> {
  const query = new URLSearchParams({ limit: String(limit), ...watch && { watch } });
  const answer = useAnswer<Connections>(`v1/subscribers?${query}`, everyMs);
  const silence = useSilence(answer, everyMs);
  useTroubles(answer.status === 404 ? [] : silence); // that is an answer: see Missing
  return answer;
}
