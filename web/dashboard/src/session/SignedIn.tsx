import { type ReactNode, useEffect } from 'react';
import { forgetWhenLeft, identify, useWho } from '../gateway/session';
import { Login } from './Login';
import './session.css';

/** Shows the page once the user is known, or the login if a credential is needed. */
export function SignedIn({ children }: { children: ReactNode }) {
  const who = useWho();
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked once more when the page is locked
  useEffect(identify, [who.state === 'locked']);
  useEffect(forgetWhenLeft, []);
  switch (who.state) {
    case 'known':
      return children;
    case 'locked':
      return <Login reason={who.reason} />;
    case 'asking':
      return who.reason ? (
        <main className="login">
          <p role="alert">The gateway does not answer ({who.reason}). Trying again…</p>
        </main>
      ) : null;
  }
}
