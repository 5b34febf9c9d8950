import { useState } from 'react';
import { createPortal } from 'react-dom';
import { Dialog } from '../editor/Dialog';
import { LoginForm } from './LoginForm';

/** Offers the login on a page that is shown without a credential. The dialog is not inside the header that may have the button. */
export function SignIn() {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Sign in
      </button>
      {open &&
        createPortal(
          <Dialog title="Sign in" small onLeave={close}>
            <LoginForm onLeave={close} />
          </Dialog>,
          document.body,
        )}
    </>
  );
}
