import { useEffect, useMemo, useState } from 'react';
import { indexOf, newest, play, step, tick } from './player';

const everyMs = 1000;

/** Returns which of several versions is shown, and how to go to others. */
export function usePlayer(ids: readonly string[]) {
  const [place, setPlace] = useState(newest);
  useEffect(() => {
    if (!place.playing) return;
    const timer = setInterval(() => setPlace((place) => tick(ids, place)), everyMs);
    return () => clearInterval(timer);
  }, [place.playing, ids]);
  const moves = useMemo(
    () => ({
      onStep: (versions: number) => setPlace((place) => ({ ...step(ids, place, versions), playing: false })),
      onPlay: (playing: boolean) => setPlace((place) => (playing ? play(ids, place) : { ...place, playing: false })),
      onNewest: () => setPlace(newest),
      onShow: (id: string) => setPlace({ id: id === ids[0] ? undefined : id, playing: false }),
    }),
    [ids],
  );
  return { index: indexOf(ids, place), playing: place.playing, ...moves };
}
