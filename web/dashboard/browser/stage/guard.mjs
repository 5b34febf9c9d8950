import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const issuer = 'https://idp.example.com';

/**
 * Credentials that gateways with its configuration accept: static tokens, and tokens of an
 * OpenID provider whose keys are in a file. All these gateways are replicas: they have the
 * same key.
 */
export class Guard {
  #folder;
  #tokens = new Map(); // by name
  #keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  /** names: those who get a static token; admin gets one too. */
  static async of(...names) {
    const guard = new Guard();
    guard.#folder = await mkdtemp(join(tmpdir(), 'watchtide-guard-'));
    const lines = ['admin', ...names].map((name) => {
      const token = randomBytes(32).toString('base64url');
      guard.#tokens.set(name, token);
      return `${name} sha256:${createHash('sha256').update(token).digest('hex')} ${name === 'admin' ? 'admins' : ''}`;
    });
    await guard.#write('tokens', lines.join('\n'));
    await guard.#write('sealing.key', randomBytes(32).toString('hex'));
    const key = { ...guard.#keys.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES256', use: 'sig' };
    await guard.#write('jwks.json', JSON.stringify({ keys: [key] }));
    return guard;
  }

  /** Returns the static token of a name. */
  token = (name) => this.#tokens.get(name);

  /** Returns a token of the provider that ends after that time. */
  jwt(name, lastsMs) {
    const claims = { iss: issuer, aud: 'watchtide', sub: name, exp: (Date.now() + lastsMs) / 1000, jti: randomBytes(8).toString('hex') };
    const text = [{ alg: 'ES256', kid: 'k1', typ: 'JWT' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = sign('sha256', Buffer.from(text), { key: this.#keys.privateKey, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  /** Returns the key of the resource that revokes somebody who has a token of the provider. */
  subjectKey = (name) => `subject/${issuer}/${name}`;

  /**
   * Returns the part of the configuration that says whose credentials are accepted.
   * revoked: the watch of what is revoked. Its source outlives the gateway; without one,
   * nothing can be revoked.
   */
  auth({ revoked } = {}) {
    const file = (name) => JSON.stringify(join(this.#folder, name));
    return `
auth:
  key_files: [${file('sealing.key')}]
  tokens_file: ${file('tokens')}
  jwt: [{ issuer: "${issuer}", audience: watchtide, algorithms: [ES256], jwks_file: ${file('jwks.json')} }]
${revoked ? `  revoked: { watch: ${revoked} }\n` : ''}roles:
  anyone: { when: "true" }
  user:   { when: principal.mechanism != "anonymous" }
  admin:  { when: '"admins" in principal.groups' }
`;
  }

  #write = (name, text) => writeFile(join(this.#folder, name), `${text}\n`, { mode: 0o600 });
}
