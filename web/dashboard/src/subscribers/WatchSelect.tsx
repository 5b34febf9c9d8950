import { setOptions } from '../app/route';

/** Selects the watch that a page shows, which is kept in the URL; '' for all. */
export function WatchSelect({ watch, names }: { watch: string; names: readonly string[] }) {
  const all = watch && !names.includes(watch) ? [watch, ...names] : names;
  return (
    <label>
      Watch{' '}
      <select value={watch} onChange={({ target }) => setOptions({ watch: target.value || undefined })}>
        <option value="">all</option>
        {all.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
