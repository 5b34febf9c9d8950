let context: CanvasRenderingContext2D | null | undefined;

/** Returns the width of a text in a font, in px; undefined where the browser cannot measure. */
export function widthOf(text: string, font: string): number | undefined {
  context ??= document.createElement('canvas').getContext('2d');
  if (!context) return undefined;
  context.font = font;
  return context.measureText(text).width;
}

const ellipsis = '…';

/** Returns a text, or as much of its beginning as is at most so wide with an ellipsis. */
export function fit(text: string, width: number, measure: (text: string) => number): string {
  if (measure(text) <= width) return text;
  const chars = [...text]; // not halves of a character
  let [low, high] = [0, chars.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measure(chars.slice(0, middle).join('') + ellipsis) <= width) low = middle;
    else high = middle - 1;
  }
  return chars.slice(0, low).join('').trimEnd() + ellipsis;
}
