import { useId, useLayoutEffect, useRef, type KeyboardEvent, type ReactNode, type SyntheticEvent } from 'react';
import './editor.css';

interface Props {
  title: string;
  /** What lies beside the title. */
  aside?: ReactNode;
  /** For a question, which needs less room than a text. */
  small?: boolean;
  /** Somebody wants to leave, with Escape for instance. */
  onLeave(): void;
  children: ReactNode;
}

/** A modal dialog of the browser, which keeps the focus inside, and gives it back. */
export function Dialog({ title, aside, small = false, onLeave, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);

  const leave = (event: SyntheticEvent) => {
    event.preventDefault();
    onLeave();
  };
  // A browser asks with `cancel` only once, and then closes the dialog whatever is answered.
  const escape = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && !event.nativeEvent.isComposing) leave(event);
  };
  return (
    <dialog ref={dialog} className={small ? 'dialog small' : 'dialog'} aria-labelledby={id} onKeyDown={escape} onCancel={leave}>
      <header className="bar"><h2 id={id}>{title}</h2>{aside}</header>
      {children}
    </dialog>
  );
}
