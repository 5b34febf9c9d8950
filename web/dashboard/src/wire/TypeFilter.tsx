import type { ReactNode } from 'react';
import { count } from '../text/number';

interface Props {
  types: ReadonlyMap<string, number>;
  hidden: ReadonlySet<string>;
  onHide(hidden: ReadonlySet<string>): void;
  children: ReactNode;
}

/** Buttons with the number of frames of each type, which hide or show them. */
export function TypeFilter({ types, hidden, onHide, children }: Props) {
  const toggle = (type: string) => {
    const next = new Set(hidden);
    if (!next.delete(type)) next.add(type);
    onHide(next);
  };
  return (
    <div className="bar types">
      <div className="bar" role="group" aria-label="Event types">
        {[...types].map(([type, n]) => (
          <button key={type} type="button" className="pill" data-type={type} aria-pressed={!hidden.has(type)} onClick={() => toggle(type)}>
            {type} <b>{count(n)}</b>
          </button>
        ))}
      </div>
      <div className="bar push">{children}</div>
    </div>
  );
}
