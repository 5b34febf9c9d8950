import { endSession } from '@watchtide/client/auth';
import { useState } from 'react';
import { base } from '../gateway/base';
import { useWho } from '../gateway/session';
import { forgetViews } from '../views/saved';
import { SignIn } from './SignIn';

/** Shows who is signed in, and a button to sign in or out. Shows nothing if the gateway does not ask for credentials. */
export function User() {
  const who = useWho();
  const [error, setError] = useState('');
  if (who.state !== 'known' || !who.hasSessions) return null;
  const { name, issuer, mechanism } = who.session;
  if (mechanism === 'anonymous')
    return (
      <div className="user">
        <span className="soft">Not signed in</span> <SignIn />
      </div>
    );

  async function signOut(): Promise<void> {
    try {
      await endSession(base);
      forgetViews();
      location.reload();
    } catch (error) {
      setError(error instanceof Error ? error.message : String(error));
    }
  }
  return (
    <p className="user">
      <span className="who" title={issuer ? `${mechanism}, from ${issuer}` : mechanism}>
        <span className="words">Signed in as </span>
        <strong>{name}</strong>
      </span>
      {mechanism !== 'certificate' && (
        <button type="button" onClick={signOut}>
          Sign out
        </button>
      )}
      {error && (
        <span role="alert" className="wrong">
          not signed out: {error}
        </span>
      )}
    </p>
  );
}
