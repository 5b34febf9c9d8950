export { type ChangesOptions, type Conflated, changes } from './changes.js';
export { type ChangeHandlers, onChange } from './on_change.js';
export { onKey } from './on_key.js';
export { type ReadyOptions, ready } from './ready.js';
