import { beginSession } from '@watchtide/client/auth';
import { type FormEvent, useId, useState } from 'react';
import { at, base } from '../gateway/base';
import { useProvider } from '../gateway/provider';

/** Asks for a token, and exchanges it for a session; or lets the user sign in with a provider. onLeave: the user may continue without. */
export function LoginForm({ onLeave }: { onLeave?: () => void }) {
  const id = useId();
  const [token, setToken] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState('');
  const provider = useProvider();

  async function signIn(event: FormEvent): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setError('');
    try {
      await beginSession(base, bare(token));
      location.reload(); // what was loaded before is not this user's
    } catch (error) {
      setError(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  }
  return (
    <form className="login-form" onSubmit={signIn}>
      {provider && (
        <button type="button" className="primary" onClick={() => location.assign(signInURL())}>
          Sign in with {provider}
        </button>
      )}
      <label htmlFor={id}>Token</label>
      <input
        id={id}
        type="password"
        autoComplete="off"
        spellCheck={false}
        autoFocus
        required
        value={token}
        onChange={({ target }) => setToken(target.value)}
      />
      {error && (
        <p role="alert" className="wrong">
          Not signed in: {error}
        </p>
      )}
      <p className="hint">The token becomes a session, in a cookie that no script can read. The page does not keep the token.</p>
      <div className="bar">
        <button type="submit" className="primary" disabled={busy || !bare(token)}>
          Sign in
        </button>
        {onLeave && (
          <button type="button" onClick={onLeave}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

// The provider sends the browser back to what it shows now.
function signInURL(): URL {
  const url = at('v1/login');
  url.searchParams.set('return', location.pathname + location.search + location.hash);
  return url;
}

// A copied token may have the name of the scheme before it, and line breaks.
const bare = (token: string) =>
  token
    .replace(/\s+/g, ' ')
    .trim()
    .replace(/^Bearer /i, '')
    .replaceAll(' ', '');
