import { setOptions } from '../app/route';

/** Chooses the watch that a page is about, which is kept in the URL; '' for all. */
export function WatchChoice({ watch, names }: { watch: string; names: readonly string[] }) {
  const all = watch && !names.includes(watch) ? [watch, ...names] : names;
  return (
    <label>Watch{' '}
      <select value={watch} onChange={({ target }) => setOptions({ watch: target.value || undefined })}>
        <option value="">all</option>
        {all.map((name) => <option key={name}>{name}</option>)}
      </select>
    </label>
  );
}
