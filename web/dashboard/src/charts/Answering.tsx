/** Says whose figures are shown, if several replicas answer; the last one of them has answered last. */
export function Answering({ instances }: { instances: readonly string[] }) {
  if (instances.length < 2) return null;
  return (
    <p className="soft" role="note" data-testid="answering">
      {instances.length} replicas answer. Counts, rates and charts are those of <strong>{instances.at(-1)}</strong>, which answered last;
      they are never mixed.
    </p>
  );
}
