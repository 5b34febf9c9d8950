import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { run } from './process.mjs';

/** Makes a certificate for 127.0.0.1 that nobody has signed but itself, with Go's own program. Returns its files. */
export async function makeCertificate() {
  const folder = await mkdtemp(join(tmpdir(), 'watchtide-certificate-'));
  const { stdout } = await promisify(execFile)('go', ['env', 'GOROOT']);
  await run('go', ['run', join(stdout.trim(), 'src/crypto/tls/generate_cert.go'), '--host', '127.0.0.1', '--ecdsa-curve', 'P256'], {
    cwd: folder,
  });
  return { cert_file: join(folder, 'cert.pem'), key_file: join(folder, 'key.pem') };
}
