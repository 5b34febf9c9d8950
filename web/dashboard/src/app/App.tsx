import { useEffect, useRef } from 'react';
import { useOperatorPages } from '../gateway/operator';
import { Palette } from '../palette/Palette';
import { User } from '../session/User';
import { Banner } from './Banner';
import { Boundary, lazily } from './Boundary';
import { DisplayMenu } from './DisplayMenu';
import { href, type Route, useRoute } from './route';
import './App.css';

const FeedPage = lazily(async () => (await import('../life/FeedPage')).FeedPage);
const HealthPage = lazily(async () => (await import('../health/HealthPage')).HealthPage);
const Overview = lazily(async () => (await import('../overview/Overview')).Overview);
const ReplicasPage = lazily(async () => (await import('../replicas/ReplicasPage')).ReplicasPage);
const ResourcesPage = lazily(async () => (await import('../resources/ResourcesPage')).ResourcesPage);
const SubscribersPage = lazily(async () => (await import('../subscribers/SubscribersPage')).SubscribersPage);
const TopologyPage = lazily(async () => (await import('../topology/TopologyPage')).TopologyPage);
const TimelinePage = lazily(async () => (await import('../timeline/TimelinePage')).TimelinePage);
const WirePage = lazily(async () => (await import('../wire/WirePage')).WirePage);

interface Listed {
  readonly page: string;
  readonly title: string;
  /** Only operators have it in their navigation. */
  readonly operators?: true;
}

const pages: readonly Listed[] = [
  { page: '', title: 'Topology', operators: true },
  { page: 'health', title: 'Health' },
  { page: 'watches', title: 'Watches' },
  { page: 'stream', title: 'Stream' },
  { page: 'subscribers', title: 'Subscribers', operators: true },
  { page: 'timeline', title: 'Timeline', operators: true },
  { page: 'replicas', title: 'Replicas', operators: true },
];

/** The frame of every page, and the page that the URL names. */
export function App() {
  const route = useRoute();
  const operator = useOperatorPages();
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.documentElement.dataset['app'] = 'ready';
  }, []);
  useEffect(() => {
    document.title = [route.name || title(route.page === '' && !operator ? 'watches' : route.page), 'Watchtide'].join(' · ');
  }, [route.page, route.name, operator]);
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the links depend on them
  useEffect(() => reveal(nav.current), [route.page, operator]);
  const shown = pages.filter(({ operators }) => operator || !operators);
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
        <nav aria-label="Pages" ref={nav}>
          <ul>
            {shown.map(({ page, title }) => (
              <li key={page}>
                <a href={href(page)} aria-current={current(route, page, operator) ? 'page' : undefined}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <Palette pages={shown.map(({ page, title }) => [page, title])} />
        <DisplayMenu />
        <User />
      </header>
      <Banner />
      <main ref={main} tabIndex={-1}>
        <Boundary key={`${route.page}/${route.name}`}>
          <Page route={route} />
        </Boundary>
      </main>
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
      return <Home />;
    case 'watches':
      return route.name === '' ? <Overview /> : <ResourcesPage key={route.name} watch={route.name} />;
    case 'changes':
      return <FeedPage key={route.name} watch={route.name} />;
    case 'replicas':
      return <ReplicasPage />;
    case 'stream':
      return <WirePage key={route.name} watch={route.name} />;
    case 'subscribers':
      return <SubscribersPage />;
    case 'health':
    case 'upstreams': // a link to what is now a part of Health
      return <HealthPage />;
    case 'timeline':
      return <TimelinePage key={route.name} watch={route.name} />;
    default:
      return (
        <p>
          There is no page “{route.page}”. <a href="#/">Go to the first page</a>
        </p>
      );
  }
}

// Scrolls the links, which may not all fit, to that of the current page.
function reveal(nav: HTMLElement | null): void {
  const link = nav?.querySelector('[aria-current]');
  if (!nav || !link) return;
  const { left, width } = link.getBoundingClientRect();
  nav.scrollLeft += left + width / 2 - nav.getBoundingClientRect().left - nav.clientWidth / 2;
}

// The first page is the topology for operators, and the watches for all others.
function Home() {
  const operator = useOperatorPages();
  if (operator === undefined) return null;
  return operator ? <TopologyPage /> : <Overview />;
}

// For those who see no topology, the first page belongs to the watches.
const current = ({ page }: Route, link: string, operator: boolean | undefined) =>
  page === link ||
  (link === 'health' && page === 'upstreams') ||
  (link === 'watches' && (page === 'changes' || (operator === false && page === '')));

const title = (page: string) => pages.find((listed) => listed.page === page)?.title ?? '';
