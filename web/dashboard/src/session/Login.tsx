import { useEffect } from 'react';
import { LoginForm } from './LoginForm';

/** The page for users who must sign in. reason: why the former user is not signed in any more, in the gateway's words; empty if there was none. */
export function Login({ reason }: { reason: string }) {
  useEffect(() => {
    document.documentElement.dataset['app'] = 'ready';
  }, []);
  return (
    <main className="login">
      <div className="card">
        <h1>
          <img src="./assets/icon.svg" alt="" width="24" height="24" /> Watchtide
        </h1>
        {reason && (
          <p role="alert" className="ended">
            <strong>You are not signed in any more.</strong> The gateway says: {reason}.
          </p>
        )}
        <p>Sign in to see the watches of this gateway. If you sign in with another page of this address, this one continues by itself.</p>
        <LoginForm />
      </div>
    </main>
  );
}
