import { useEffect, useRef } from 'react';
import { Palette } from '../palette/Palette';
import { User } from '../session/User';
import { Banner } from './Banner';
import { DisplayMenu } from './DisplayMenu';
import { Part, part } from './Part';
import { href, type Route, useRoute } from './route';
import './App.css';

const Overview = part(async () => (await import('../overview/Overview')).Overview);
const ResourcesPage = part(async () => (await import('../resources/ResourcesPage')).ResourcesPage);
const SubscribersPage = part(async () => (await import('../subscribers/SubscribersPage')).SubscribersPage);
const UpstreamsPage = part(async () => (await import('../upstreams/UpstreamsPage')).UpstreamsPage);
const WirePage = part(async () => (await import('../wire/WirePage')).WirePage);

const pages: ReadonlyArray<readonly [page: string, title: string]> = [
  ['', 'Overview'],
  ['stream', 'Stream'],
  ['subscribers', 'Subscribers'],
  ['upstreams', 'Upstreams'],
];

/** The frame of every page, and the page that the URL names. */
export function App() {
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.documentElement.dataset['app'] = 'ready';
  }, []);
  useEffect(() => {
    document.title = [route.name || title(route.page), 'Watchtide'].join(' · ');
  }, [route.page, route.name]);
  return (
    <div className="frame">
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header className="top">
        <h1>
          <a href="#/">
            <img src="./assets/icon.svg" alt="" width="24" height="24" /> Watchtide
          </a>
        </h1>
        <nav aria-label="Pages">
          <ul>
            {pages.map(([page, text]) => (
              <li key={page}>
                <a href={href(page)} aria-current={current(route, page) ? 'page' : undefined}>
                  {text}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <DisplayMenu />
        <User />
      </header>
      <Banner />
      <main ref={main} tabIndex={-1}>
        <Part key={route.page}>
          <Page route={route} />
        </Part>
      </main>
      <Palette pages={pages} />
      <footer>
        <a href="./docs/">documentation</a> <a href="./openapi.json">API</a> <a href="./v1/watches">watches as JSON</a>{' '}
        <a href="./assets/licenses.txt">licences</a>
      </footer>
    </div>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case '':
      return <Overview />;
    case 'watches':
      return <ResourcesPage key={route.name} watch={route.name} />;
    case 'stream':
      return <WirePage key={route.name} watch={route.name} />;
    case 'subscribers':
      return <SubscribersPage />;
    case 'upstreams':
      return <UpstreamsPage />;
    default:
      return (
        <p>
          There is no page “{route.page}”. <a href="#/">Go to the overview</a>
        </p>
      );
  }
}

// The page of a watch belongs to the overview.
const current = ({ page }: Route, link: string) => page === link || (link === '' && page === 'watches');

const title = (page: string) => pages.find(([known]) => known === page)?.[1] ?? '';
