import { type RefObject, useEffect } from 'react';

/** Calls changed with the width of an element in characters, as of the unit ch, whenever it is another one. */
export function useWidth(measured: RefObject<HTMLElement | null>, changed: (characters: number) => void): void {
  useEffect(() => {
    const element = measured.current!;
    const size = new ResizeObserver(() => {
      const character = characterWidth(element);
      if (character > 0) changed(Math.floor(element.clientWidth / character));
    });
    size.observe(element);
    return () => size.disconnect();
  }, [measured, changed]);
}

function characterWidth(element: HTMLElement): number {
  const probe = document.createElement('span');
  probe.style.position = 'absolute';
  probe.style.width = '100ch';
  element.append(probe);
  const { width } = probe.getBoundingClientRect();
  probe.remove();
  return width / 100;
}
