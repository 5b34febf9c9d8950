export { EditorDialog } from './EditorDialog';
export { DeleteDialog } from './DeleteDialog';
