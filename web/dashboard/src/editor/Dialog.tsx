import { type KeyboardEvent, type ReactNode, type SyntheticEvent, useId, useLayoutEffect, useRef } from 'react';
import './editor.css';

interface Props {
  title: ReactNode;
  /** Shown beside the title. */
  aside?: ReactNode;
  /** For a question, which needs less room than an editor. */
  small?: boolean;
  /** A further class. */
  className?: string;
  /** The user wants to close it, with Escape for instance. */
  onLeave(): void;
  children: ReactNode;
}

/** A modal dialog of the browser, which traps the focus and restores it afterwards. */
export function Dialog({ title, aside, small = false, className = '', onLeave, children }: Props) {
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
  // A browser dispatches `cancel` only once, and then closes the dialog in any case.
  const escape = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && !event.nativeEvent.isComposing) leave(event);
  };
  return (
    <dialog
      ref={dialog}
      className={['dialog', small && 'small', className].filter(Boolean).join(' ')}
      aria-labelledby={id}
      onKeyDown={escape}
      onCancel={leave}
    >
      <header className="bar">
        <h2 id={id}>{title}</h2>
        {aside}
      </header>
      {children}
    </dialog>
  );
}
