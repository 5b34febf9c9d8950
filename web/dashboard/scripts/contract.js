// Writes src/gateway/contract.ts: the responses of the gateway as types, generated
// from the schemas in openapi/openapi.json, like those of the client. With --check it
// only verifies that the file is up to date.
import { readFileSync, writeFileSync } from 'node:fs';
import { generate } from '../../client/scripts/protocol.js';

const document = new URL('../../../openapi/openapi.json', import.meta.url);
const target = new URL('../src/gateway/contract.ts', import.meta.url);

// The types that the dashboard reads; the types that they refer to are included.
const roots = ['Client', 'Event', 'History', 'ListWatchesResponse', 'Problem', 'Replicas', 'Resource', 'Series', 'Subscribers', 'Topology'];

const wanted = generate(JSON.parse(readFileSync(document, 'utf8')), roots).replace('by scripts/protocol.js', 'by scripts/contract.js');
if (!process.argv.includes('--check')) {
  writeFileSync(target, wanted);
} else if (readFileSync(target, 'utf8') !== wanted) {
  console.error('src/gateway/contract.ts is not what openapi/openapi.json says: npm run contract');
  process.exit(1);
}
