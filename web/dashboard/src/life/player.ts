/** Which of several versions, the newest first, is shown: it has a name, since newer ones may come. */
export interface Place {
  /** undefined: the newest, whichever that is. */
  readonly id: string | undefined;
  readonly playing: boolean;
}

export const newest: Place = { id: undefined, playing: false };

/** Returns the index of the version that is shown; 0 if it is not there any more. */
export const indexOf = (ids: readonly string[], { id }: Place): number => Math.max(0, id === undefined ? 0 : ids.indexOf(id));

/** Steps so many versions towards the newest, or back if it is negative. */
export function step(ids: readonly string[], place: Place, versions: number): Place {
  const to = Math.max(0, Math.min(ids.length - 1, indexOf(ids, place) - versions));
  return { ...place, id: to === 0 ? undefined : ids[to] };
}

/** Begins to play: from the oldest version if the newest is shown. */
export function play(ids: readonly string[], place: Place): Place {
  return { ...(indexOf(ids, place) === 0 ? { id: ids.at(-1) } : place), playing: true };
}

/** Steps forward while it plays, and stops at the newest. */
export function tick(ids: readonly string[], place: Place): Place {
  const next = step(ids, place, 1);
  return next.id === undefined ? newest : next;
}
