import type { Problem } from '@watchtide/protocol';

/** Returns the text of a refusal: the problem's detail, or at least the status. */
export async function refusal(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => undefined)) as Partial<Problem> | undefined;
  return problem?.detail || problem?.title || `${response.status} ${response.statusText}`.trim();
}
