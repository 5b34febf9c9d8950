import { once } from 'node:events';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';

export const chromiumProgram = process.env.CHROMIUM || '/usr/bin/chromium';

// Chromium itself asks this host about the fields of forms.
const autofill = 'content-autofill.googleapis.com:443';

/**
 * Starts Debian's Chromium. Requests of pages and workers to any address but 127.0.0.1
 * go to a proxy, which refuses them and records them in strays. Chromium's own requests
 * find no host.
 */
export async function startChromium() {
  const strays = [];
  const trap = createServer((request, response) => {
    strays.push(request.url);
    response.writeHead(502).end();
  });
  trap.on('connect', (request, socket) => {
    if (request.url !== autofill) strays.push(request.url);
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  trap.listen(0, '127.0.0.1');
  await once(trap, 'listening');
  const browser = await chromium.launch({
    executablePath: chromiumProgram,
    ignoreDefaultArgs: ['--disable-back-forward-cache'], // users have it
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--disable-component-update'],
  });
  return {
    browser,
    /** For a new context. */
    proxy: { server: `127.0.0.1:${trap.address().port}`, bypass: '127.0.0.1' },
    strays,
    async stop() {
      await browser.close();
      trap.close();
    },
  };
}
