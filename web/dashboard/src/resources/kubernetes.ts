import type { Resource } from '@watchtide/client';
import type { Field } from './field';
import { at, isObject } from './path';

/** The columns of Kubernetes objects that come first, and what they are called. */
const leads: ReadonlyArray<readonly [title: string, ids: readonly string[]]> = [
  ['name', ['metadata.name']],
  ['namespace', ['metadata.namespace']],
  ['age', ['metadata.creationTimestamp']],
  ['status', ['status.phase', 'status.state', 'status.readyReplicas', 'status.availableReplicas']],
];

const isKubernetes = ({ value }: Resource) =>
  isObject(value) && typeof value['apiVersion'] === 'string' && typeof value['kind'] === 'string' && isObject(value['metadata']);

/** Returns the fields, of which those with a lead come first, if the resources are objects of Kubernetes. */
export function withLeads(fields: readonly Field[], sample: readonly Resource[]): Field[] {
  if (sample.length === 0 || !sample.every(isKubernetes)) return [...fields];
  const ids = leads.map(([title, ids]) => [title, ids.find((id) => fields.some((field) => field.id === id))] as const);
  return fields.map((field) => {
    const lead = ids.findIndex(([, id]) => id === field.id);
    if (lead < 0) return field;
    return { ...field, title: ids[lead]![0], lead, isKey: lead === 0 && sample.every(isNamed) };
  });
}

// The key says no more than the name and the namespace.
function isNamed({ key, value }: Resource): boolean {
  const name = at(value, ['metadata', 'name']);
  return key === name || key === `${at(value, ['metadata', 'namespace'])}/${name}`;
}

/** Reports whether a field of a resource is in the data of a Kubernetes Secret. */
export const isSecretData = (value: unknown, name: string): boolean =>
  isObject(value) && value['kind'] === 'Secret' && typeof value['apiVersion'] === 'string' && (name === 'data' || name === 'stringData');
