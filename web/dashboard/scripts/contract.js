// Writes src/gateway/contract.ts: the answers of the gateway as types, made of
// the schemas in openapi/openapi.json, as the client's are. With --check it only
// says whether the file is what it would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { generate } from '../../client/scripts/protocol.js';

const document = new URL('../../../openapi/openapi.json', import.meta.url);
const target = new URL('../src/gateway/contract.ts', import.meta.url);

// What the dashboard reads; what these refer to comes along.
const roots = ['Event', 'ListWatchesResponse', 'Problem', 'Resource', 'Subscribers'];

const wanted = generate(JSON.parse(readFileSync(document, 'utf8')), roots)
  .replace('by scripts/protocol.js', 'by scripts/contract.js');
if (!process.argv.includes('--check')) {
  writeFileSync(target, wanted);
} else if (readFileSync(target, 'utf8') !== wanted) {
  console.error('src/gateway/contract.ts is not what openapi/openapi.json says: npm run contract');
  process.exit(1);
}
