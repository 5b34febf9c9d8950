import { stateTexts } from './states';

/** Explains the strips of a row. */
export function Legend() {
  return (
    <ul className="legend" aria-label="Legend">
      {Object.entries(stateTexts).map(([state, text]) => (
        <li key={state}>
          <span className="swatch stretch" data-state={state} /> {text}
        </li>
      ))}
      <li>
        <span className="swatch changes" /> changes per second
      </li>
      <li>
        <span className="swatch heats" /> latency: p99 above p50, darker is slower
      </li>
      <li>
        <span className="swatch lag" /> lag
      </li>
    </ul>
  );
}
