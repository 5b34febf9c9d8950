import { Component, type ComponentType, type LazyExoticComponent, lazy, type ReactNode, Suspense } from 'react';

class NotLoadedError extends Error {}

/**
 * Returns a component that is loaded when it is first shown, within a Boundary. Its file may be
 * gone by then, since the names of files change with every version of the gateway.
 */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): LazyExoticComponent<ComponentType<P>> {
  return lazy(() =>
    load().then(
      (component) => ({ default: component }),
      (error) => Promise.reject(new NotLoadedError(String(error))),
    ),
  );
}

/** Shows a part of the page, nothing while it is being loaded, and an offer to reload the page if that, or the part itself, fails. */
export class Boundary extends Component<{ children: ReactNode }, { failed?: unknown }> {
  override state: { failed?: unknown } = {};

  static getDerivedStateFromError(failed: unknown) {
    return { failed };
  }

  override render() {
    const { failed } = this.state;
    if (failed instanceof NotLoadedError) return <NotLoaded />;
    if (failed !== undefined) return <Failed error={failed} />;
    return <Suspense>{this.props.children}</Suspense>;
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
