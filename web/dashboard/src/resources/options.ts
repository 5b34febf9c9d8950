import { mapKey } from '@watchtide/client';
import { setOptions } from '../app/route';

/** Returns the key in the URL, as in the store's map: `key=…`, and `key_encoding=base64` as in the events. */
export function openedKey(options: URLSearchParams): string | undefined {
  const key = options.get('key');
  if (key === null) return undefined;
  return mapKey(options.get('key_encoding') === 'base64' ? { key, key_encoding: 'base64' } : { key });
}

/** Opens the detail of a resource. step: as a new entry in the history. */
export function openKey(rowKey: string, step: boolean): void {
  const encoded = rowKey.startsWith('\udfff');
  setOptions({ key: encoded ? rowKey.slice(1) : rowKey, key_encoding: encoded ? 'base64' : undefined }, step);
}

/** Returns options with which the detail of a resource is open. */
export function optionsOfKey(options: URLSearchParams, rowKey: string): URLSearchParams {
  const opened = new URLSearchParams(options);
  const encoded = rowKey.startsWith('\udfff');
  opened.set('key', encoded ? rowKey.slice(1) : rowKey);
  if (encoded) opened.set('key_encoding', 'base64');
  else opened.delete('key_encoding');
  return opened;
}

/** Closes the detail. */
export function closeKey(): void {
  setOptions({ key: undefined, key_encoding: undefined });
}
