import type { Selection } from '../gateway/subscribers';

/** The properties by which subscribers are grouped. */
export const properties = ['application', 'network', 'transport', 'principal', 'client_id', 'watch'] as const;

export type Property = (typeof properties)[number];

/** Returns what people call a property. */
export const propertyName = (property: Property): string => (property === 'client_id' ? 'OAuth client' : property);

const isProperty = (text: string | null): text is Property => properties.some((one) => one === text);

/** Returns the selection that the URL has. */
export function selectionOf(options: URLSearchParams): Selection & { readonly group: Property } {
  const text = (name: string) => options.get(name) ?? '';
  const group = options.get('group');
  return {
    watch: text('watch'),
    search: text('search'),
    application: text('application'),
    network: text('network'),
    transport: text('transport'),
    principal: text('principal'),
    client_id: text('client_id'),
    sort: options.get('sort') === 'since' ? 'since' : '',
    group: isProperty(group) ? group : 'application',
  };
}
