import { Component, type ComponentType, type ReactNode, useLayoutEffect, useState } from 'react';

class NotLoadedError extends Error {}

/**
 * Returns a component that is loaded when it is first shown, within a Boundary, and is nothing until then. Its file may be
 * gone by then, since the names of files change with every version of the gateway.
 *
 * It is not React's lazy: what that shows after a fallback waits until 300 ms after the fallback.
 */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | undefined;
  // biome-ignore lint/correctness/noComponentHookFactories: modules call this once, as they call lazy
  function Lazy(props: P) {
    const [Shown, setShown] = useState(() => loaded);
    const [failed, setFailed] = useState<NotLoadedError>();
    useLayoutEffect(() => {
      if (loaded) return;
      load().then(
        (component) => {
          loaded = component;
          setShown(() => component);
        },
        (error) => setFailed(new NotLoadedError(String(error))),
      );
    }, []);
    if (failed) throw failed;
    return Shown && <Shown {...props} />;
  }
  return Lazy;
}

/** Shows a part of the page, and an offer to reload the page if it cannot be loaded, or fails. */
export class Boundary extends Component<{ children: ReactNode }, { failed?: unknown }> {
  override state: { failed?: unknown } = {};

  static getDerivedStateFromError(failed: unknown) {
    return { failed };
  }

  override render() {
    const { failed } = this.state;
    if (failed instanceof NotLoadedError) return <NotLoaded />;
    if (failed !== undefined) return <Failed error={failed} />;
    return this.props.children;
  }
}

// The rest of the page goes on: it leads to other parts, and says whether the data is fresh.
function Failed({ error }: { error: unknown }) {
  return (
    <p role="alert">
      This part of the page has failed: {error instanceof Error ? error.message : String(error)}.{' '}
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </p>
  );
}

// A reload would lose what the user has typed elsewhere on the page, so it is only offered.
function NotLoaded() {
  return (
    <p role="alert">
      A part of this page could not be loaded: the gateway has been updated since the page was opened, or does not answer.{' '}
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </p>
  );
}
