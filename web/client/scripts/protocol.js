// Writes src/protocol.ts: the events and the responses of the gateway as types, for the
// client and the dashboard, generated from the schemas in openapi/watchtidev1/openapi.json. With
// --check it only verifies that the file is up to date.
//
// The source is the OpenAPI document and not the .proto, because it describes what is
// sent over HTTP: revisions are strings there, and values any JSON.
import { readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const document = new URL('../../../openapi/watchtidev1/openapi.json', import.meta.url);
const target = new URL('../src/protocol.ts', import.meta.url);

// The types that they read; the types that these refer to are included.
const roots = ['Event', 'Problem', 'Client', 'History', 'ListWatchesResponse', 'Replicas', 'Resource', 'Series', 'Subscribers', 'Topology'];

export function generate({ components: { schemas } }) {
  const names = new Set(roots);
  const declarations = [];
  for (const name of names) {
    // grows while it is walked
    declarations.push(declare(name, schemas[name], (ref) => names.add(ref)));
  }
  return `// Generated from openapi/watchtidev1/openapi.json by scripts/protocol.js. Do not edit.\n\n${declarations.join('\n')}`;
}

function declare(name, schema, refer) {
  if (!schema) throw new Error(`openapi.json has no schema ${name}`);
  const comment = doc(schema.description, '');
  if (schema.type !== 'object') return `${comment}export type ${name} =${typeOf(schema, refer, '').replace(/^(?!\n)/, ' ')};\n`;
  return `${comment}export interface ${name} ${object(schema, refer, '')}\n`;
}

function typeOf(schema, refer, indent) {
  if (schema.nullable && (schema.type || schema.allOf)) return `${typeOf({ ...schema, nullable: false }, refer, indent)} | null`;
  if (schema.$ref) return reference(schema.$ref, refer);
  if (schema.oneOf) return schema.oneOf.map((one) => `\n${indent}  | ${typeOf(one, refer, indent)}`).join('');
  if (schema.allOf) return schema.allOf.map((one) => typeOf(one, refer, indent)).join(' & ');
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  switch (schema.type) {
    case undefined:
      return 'unknown';
    case 'integer':
      return 'number';
    case 'array':
      return `Array<${typeOf(schema.items, refer, indent)}>`;
    case 'object':
      return object(schema, refer, indent);
    case 'string':
    case 'number':
    case 'boolean':
      return schema.type;
    default:
      throw new Error(`scripts/protocol.js cannot write the type ${JSON.stringify(schema.type)} yet`);
  }
}

function reference(ref, refer) {
  const name = ref.split('/').at(-1);
  refer(name);
  return name;
}

function object({ properties = {}, required = [], additionalProperties: others }, refer, indent) {
  if (others) return `Record<string, ${typeOf(others, refer, indent)}>`;
  const inner = `${indent}  `;
  const fields = Object.entries(properties).map(([name, schema]) => {
    const optional = required.includes(name) ? '' : '?';
    return `${doc(schema.description, inner)}${inner}${name}${optional}: ${typeOf(schema, refer, inner)};\n`;
  });
  return `{\n${fields.join('')}${indent}}`;
}

const doc = (text, indent) => (text ? `${indent}/** ${text.trim().replace(/\s+/g, ' ')} */\n` : '');

if (import.meta.url === pathToFileURL(process.argv[1]).href) main();

function main() {
  const wanted = generate(JSON.parse(readFileSync(document, 'utf8')));
  if (!process.argv.includes('--check')) return writeFileSync(target, wanted);
  if (readFileSync(target, 'utf8') === wanted) return;
  console.error('src/protocol.ts is not what openapi/watchtidev1/openapi.json says: npm run generate');
  process.exit(1);
}
