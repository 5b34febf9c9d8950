import { createServer } from 'node:http';
import { once } from 'node:events';
import { chromium } from 'playwright-core';

export const chromiumProgram = process.env.CHROMIUM || '/usr/bin/chromium';

// Chromium itself asks there what the fields of a form are for.
const autofill = 'content-autofill.googleapis.com:443';

/**
 * Debian's Chromium. Whatever a visitor's pages want from another address than
 * 127.0.0.1, their workers too, ends in strays: a proxy that notes it and refuses.
 * What Chromium itself would like to know of the world, it does not find.
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
