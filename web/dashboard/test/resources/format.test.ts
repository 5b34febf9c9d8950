import { describe, expect, it } from 'vitest';
import { brief } from '../../src/resources/brief';
import { fieldsOf, pick } from '../../src/resources/fields';
import { isTime, unitOf, withUnit } from '../../src/resources/format';
import { isSecretName } from '../../src/resources/secret';
import { newsOf } from '../../src/resources/useNews';

const room = { columns: 6, narrow: false };
const resources = (values: Record<string, unknown>) => Object.entries(values).map(([key, value]) => ({ key, value, revision: '1' }));
const picked = (values: Record<string, unknown>, of = room) => pick(fieldsOf(resources(values)), of);

describe('units', () => {
  it.each([
    ['rss_bytes', 0, '0 B'],
    ['rss_bytes', 1536, '1.5 KiB'],
    ['sizeBytes', 3n * 1024n ** 3n, '3.0 GiB'],
    ['latency_ms', 0.25, '0.3 ms'],
    ['latency_ms', 1234, '1.2 s'],
    ['ms', 125_000, '2 min 5 s'],
    ['uptime_seconds', 3.5, '3.5 s'],
    ['uptime_seconds', 90_000, '1 d 1 h'],
    ['cpu_percent', 12.345, '12.3 %'],
    ['cpu_percent', 12345, '12,345 %'],
    ['start_time_seconds', 1_795_718_605, undefined],
    ['megabytes', 5, undefined],
    ['port', 8080, undefined],
    ['rss_bytes', 'many', undefined],
  ])('%s: %s is %s', (name, value, text) => expect(withUnit(value, unitOf(name))).toBe(text));

  it('knows times', () => {
    for (const text of ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.123456789+02:00']) expect(isTime(text)).toBe(true);
    for (const text of ['2026-01-02', '2026-13-02T03:04:05Z', '2026-01-02T03:04:05', 5, null]) expect(isTime(text)).toBe(false);
  });
});

describe('secrets', () => {
  it.each(['secret', 'client_secret', 'dbPassword', 'PASSWORD', 'access-token', 'apiKey', 'private_key', 'credentials', 'tokens'])(
    '%s is one',
    (name) => expect(isSecretName(name, 'x')).toBe(true),
  );
  it.each(['key', 'secretary', 'compass', 'tokenizer', 'primary_key', 'passing'])('%s is none', (name) =>
    expect(isSecretName(name, 'x')).toBe(false),
  );
  it('is neither a flag nor a number of tokens', () => {
    expect(isSecretName('has_password', true)).toBe(false);
    expect(isSecretName('max_tokens', 5)).toBe(false);
    expect(isSecretName('password', 1234)).toBe(true);
  });
  it('are never chosen, nor shown in what is', () => {
    const row = (i: number) => ({ token: `t${i}`, auth: { password: `p${i}` }, secret: i, list: [{ api_key: `k${i}` }], tokens: i });
    expect(picked({ a: row(1), b: row(2), c: row(3) })).toEqual(['key', 'list', 'tokens']);
    expect(picked({ a: { token: 'x' } })).toEqual(['key']);
    expect(brief(row(1))).toBe('{token: •••, auth: {password: •••}, secret: •••, list: [{api_key: •••}], tokens: 1}');
    expect(newsOf(row(1), { ...row(1), token: 't2' }, 'cpu')).toBe('token: •••');
  });
  it('are all data of a Secret', () => {
    const of = (name: string) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: { tls: `c${name}` }, type: 'Opaque' });
    const ids = fieldsOf(resources({ a: of('a'), b: of('b'), c: of('c') }));
    expect(ids.find(({ id }) => id === 'data.tls')?.secret).toBe(true);
    expect(picked({ a: of('a'), b: of('b'), c: of('c') })).not.toContain('data.tls');
  });
});

describe('objects of Kubernetes', () => {
  const pod = (namespace: string, name: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { creationTimestamp: '2026-01-02T03:04:05Z', labels: { app: name }, name, namespace, uid: `u${name}` },
    spec: { nodeName: `n${name}` },
    status: { phase: 'Running', podIP: `10.0.0.${name}` },
  });
  const pods = { 'x/1': pod('x', '1'), 'y/2': pod('y', '2'), 'y/3': pod('y', '3') };
  it('show name, namespace, age and status first, which take the place of the key', () => {
    const leads = ['metadata.name', 'metadata.namespace', 'metadata.creationTimestamp', 'status.phase'];
    expect(picked(pods).slice(0, 4)).toEqual(leads);
    expect(picked(pods, { columns: 6, narrow: true }).slice(0, 4)).toEqual(leads);
    expect(picked(pods)).toHaveLength(6);
    expect(picked({ other: pod('x', '1') }).slice(0, 2)).toEqual(['key', 'metadata.name']);
    const titles = new Map(fieldsOf(resources(pods)).map(({ id, title, time }) => [id, [title, time]]));
    expect(titles.get('metadata.creationTimestamp')).toEqual(['age', true]);
  });
  it('are not what others are', () => {
    expect(picked({ ...pods, z: { metadata: { name: 'z' } } })[0]).toBe('key');
  });
});
