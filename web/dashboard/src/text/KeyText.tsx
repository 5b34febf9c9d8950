import type { ClipboardEvent } from 'react';
import { isPlain, type Piece, pieces } from './visible';
import './KeyText.css';

/**
 * Shows the key of a resource, apart from the direction of the text around it. Characters
 * that would not be seen are escapes; what is copied has the characters themselves.
 */
export function KeyText({ text }: { text: string }) {
  return isPlain(text, 'key') ? <bdi>{text}</bdi> : <Escaped parts={pieces(text)} />;
}

/** Shows a text of a value. As with a key, no character in it changes the order of what is shown; tabs and line ends stay. */
export function ValueText({ text }: { text: string }) {
  return isPlain(text, 'text') ? text : <Escaped parts={pieces(text, 'text')} />;
}

function Escaped({ parts }: { parts: readonly Piece[] }) {
  return (
    <bdi onCopy={onCopy}>
      {parts.map(({ text, char }, i) =>
        char === undefined ? (
          text
        ) : (
          <span key={i} className="escape" data-code={char.charCodeAt(0)}>
            {text}
          </span>
        ),
      )}
    </bdi>
  );
}

function onCopy(event: ClipboardEvent<HTMLElement>): void {
  const selected = document.getSelection();
  if (!selected?.rangeCount) return;
  const range = selected.getRangeAt(0);
  if (!event.currentTarget.contains(range.commonAncestorContainer)) return; // more than the key
  event.preventDefault();
  event.clipboardData.setData('text/plain', charsOf(range));
}

function charsOf(range: Range): string {
  const inside = range.commonAncestorContainer.parentElement?.dataset['code'];
  if (inside) return String.fromCharCode(Number(inside)); // a part of one escape
  const part = range.cloneContents();
  for (const escape of part.querySelectorAll<HTMLElement>('[data-code]'))
    escape.textContent = String.fromCharCode(Number(escape.dataset['code']));
  return part.textContent ?? '';
}
