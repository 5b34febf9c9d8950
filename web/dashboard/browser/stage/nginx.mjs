import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './port.mjs';
import { Process } from './process.mjs';

export const nginxProgram = ['/usr/sbin/nginx', '/usr/bin/nginx', '/usr/local/bin/nginx'].find(existsSync);

/** Starts Debian's nginx with its defaults, including buffering, in front of a gateway: at / and under /tide/. */
export async function startNginx(gateway) {
  const folder = await mkdtemp(join(tmpdir(), 'watchtide-nginx-'));
  const port = await freePort(); // nginx cannot choose one
  const file = join(folder, 'nginx.conf');
  await writeFile(file, config(folder, port, gateway.origin));
  const [process] = await Process.start(nginxProgram, ['-p', folder, '-c', file], (line) => /start worker process \d+/.test(line));
  return { origin: `http://127.0.0.1:${port}`, stop: () => process.stop() };
}

const config = (folder, port, origin) => `
daemon off;
${process.getuid() === 0 ? 'user root root;' : ''}
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr notice;
events {}
http {
  access_log off;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass ${origin}; }
    location /tide/ { proxy_pass ${origin}/; }
  }
}
`;
