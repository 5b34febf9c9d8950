export { DeleteDialog } from './DeleteDialog';
export { EditorDialog } from './EditorDialog';
