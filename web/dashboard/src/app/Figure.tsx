import type { ReactNode } from 'react';

/** An entry in the <dl> of a card, as wide as a third of it or, if wide, all of it. */
export function Figure({ name, wide = false, children }: { name: string; wide?: boolean; children: ReactNode }) {
  return (
    <div className={wide ? 'wide' : ''}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
