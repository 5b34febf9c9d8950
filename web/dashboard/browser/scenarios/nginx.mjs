import assert from 'node:assert/strict';
import { nginxProgram, startNginx } from '../stage/nginx.mjs';
import { pages } from '../stage/pages.mjs';
import { scenario } from '../stage/scenario.mjs';
import { shared } from '../stage/shared.mjs';

// A change in a buffer would wait for the next 4 KiB, which never arrive.
const promptly = 15_000;
const skip = nginxProgram ? false : 'nginx is missing: apt-get install nginx';

for (const path of ['/', '/tide/']) {
  scenario(
    `behind nginx with its default buffering, at ${path}`,
    async (stage) => {
      const [gateway, upstream] = [await shared.gateway(), await shared.upstream()];
      const nginx = stage.own(await startNginx(gateway));
      const visitor = await stage.visitor();
      const tab = await visitor.open(`${nginx.origin}${path}#/watches/nodes`);
      await tab.consistent({ rows: 50 });
      await upstream.put('nodes', 'alone', { name: 'a single small change' });
      await tab.consistent({ rows: 51, limit: promptly });
      await upstream.delete('nodes', 'alone');
      await tab.consistent({ rows: 50, limit: promptly });

      for (const { hash, shows } of pages) {
        const other = await visitor.open(`${nginx.origin}${path}${hash}`);
        await other.page.locator(shows).first().waitFor();
        assert.equal(await other.banner.count(), 0);
        await other.page.close();
      }
    },
    { skip },
  );
}
