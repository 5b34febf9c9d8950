import assert from 'node:assert/strict';
import { Gateway } from '../stage/gateway.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';
import { Site } from '../stage/site.mjs';
import { until } from '../stage/until.mjs';

scenario('client.js: a page of another origin runs the module that the Stream page shows', async (stage) => {
  let html = '';
  const site = stage.own(await Site.start({}, (_request, response) => response.setHeader('Content-Type', 'text/html').end(html)));
  const gateway = await Gateway.start(await shared.upstream(), { origins: [site.origin] });
  stage.own({ stop: gateway.kill });
  await gateway.put('notes', 'milk', 'two litres');

  const visitor = await stage.visitor();
  const stream = await visitor.open(`${gateway.origin}/#/stream/notes`);
  const example = await stream.page.locator('[data-example="client.js"] pre').innerText();
  assert.match(example, /^import \{ watch \} from 'http:\/\/127\.0\.0\.1:\d+\/client\.js';$/m);

  html = `<!doctype html><script type="module">${example}</script>`;
  visitor.tolerate(new RegExp(`^a request to ${gateway.origin}/`));
  await visitor.open(site.origin);
  const logged = (text) => until(text, () => visitor.log.some((line) => line.includes(text)));
  await logged('milk two litres');
  await gateway.put('notes', 'milk', 'none');
  await logged('milk none');
});

scenario('client.js: a page that the gateway does not allow may import the client, and reads nothing', async (stage) => {
  const gateway = await shared.gateway();
  const page = `<!doctype html><script type="module">
    import { watch } from '${gateway.origin}/client.js';
    document.title = 'imported';
    watch('${gateway.origin}/', { watches: ['notes'] }).store('notes').subscribe(({ state, resources }) => {
      if (resources.size > 0) document.title = 'read';
    });
  </script>`;
  const site = stage.own(await Site.start({}, (_request, response) => response.setHeader('Content-Type', 'text/html').end(page)));
  const visitor = await stage.visitor();
  visitor.tolerate(new RegExp(`^a request to ${gateway.origin}/`), /CORS policy/, /Failed to load resource: net::ERR_FAILED/);
  const { page: shown } = await visitor.open(site.origin);
  await until('a refused request', () => visitor.log.some((line) => line.includes('CORS policy')));
  assert.equal(await shown.title(), 'imported');
});
