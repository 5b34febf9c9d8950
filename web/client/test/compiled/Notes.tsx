import { useResource, useWatch } from '../../src/react.js';
import type { Counted } from '../line.js';

/** A list and a sum without a single useMemo: the compiler adds them. */
export function Notes({ notes, rendered }: { notes: Counted; rendered: (what: string) => void }) {
  const { state, resources } = useWatch(notes);
  const first = useWatch(notes, ({ resources }) => resources.get('a')?.value);
  const resource = useResource(notes, 'a');
  const rows = [...resources].map(([key, { value }]) => `${key}=${value}`);
  const sum = [...resources.values()].reduce((all, { value }) => all + value, 0);
  return (
    <p>
      {state} {rows.join()} {sum} {first} {resource?.value} <Total resources={resources} rendered={rendered} />
    </p>
  );
}

function Total({ resources, rendered }: { resources: ReadonlyMap<string, unknown>; rendered: (what: string) => void }) {
  rendered('Total');
  return <b>{resources.size}</b>;
}
