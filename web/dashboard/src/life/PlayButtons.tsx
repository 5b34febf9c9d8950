import { count } from '../text/number';

interface Props {
  readonly index: number; // of the version that is shown, 0 for the newest
  readonly versions: number;
  /** What they are: a version of a resource, unless it is a feed. */
  readonly noun?: string;
  readonly playing: boolean;
  readonly onStep: (versions: number) => void;
  readonly onPlay: (playing: boolean) => void;
  readonly onNewest: () => void;
}

/** Plays, pauses and steps through versions. */
export function PlayButtons({ index, versions, noun = 'version', playing, onStep, onPlay, onNewest }: Props) {
  return (
    <div className="bar player" role="toolbar" aria-label="Versions">
      <button type="button" onClick={() => onStep(-1)} disabled={index >= versions - 1}>
        <span aria-hidden="true">◀</span> Older
      </button>
      <button type="button" onClick={() => onPlay(!playing)} disabled={versions < 2}>
        {playing ? 'Pause' : 'Play'}
      </button>
      <button type="button" onClick={() => onStep(1)} disabled={index === 0}>
        Newer <span aria-hidden="true">▶</span>
      </button>
      <button type="button" onClick={onNewest} disabled={index === 0}>
        Newest
      </button>
      <span className="soft" role="status">
        {versions > 0 && `${noun} ${count(versions - index)} of ${count(versions)}`}
      </span>
    </div>
  );
}
