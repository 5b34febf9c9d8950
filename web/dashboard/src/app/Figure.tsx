import type { ReactNode } from 'react';
import './cards.css';

/** A figure of a card: one of its <dl>, a third of its width or all of it. */
export function Figure({ name, wide = false, children }: { name: string; wide?: boolean; children: ReactNode }) {
  return <div className={wide ? 'wide' : ''}><dt>{name}</dt><dd>{children}</dd></div>;
}
