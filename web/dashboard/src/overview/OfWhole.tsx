import type { Watch } from '@watchtide/protocol';

/** Shows a figure of a watch. The gateway sends it only to users who may see the whole watch. */
export function OfWhole({ watch, children }: { watch: Watch; children: string }) {
  return watch.partial ? (
    <span className="soft" title="You may see only a part of this watch, and this figure is about all of it.">
      –
    </span>
  ) : (
    children
  );
}
