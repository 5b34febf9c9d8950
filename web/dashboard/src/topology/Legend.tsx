/** Explains the lines of the diagram. */
export function Legend() {
  return (
    <ul className="legend soft" aria-label="Legend">
      {(['fresh', 'behind', 'late'] as const).map((freshness) => (
        <li key={freshness}>
          <svg width="44" height="10" aria-hidden="true">
            <path className="edge" data-freshness={freshness} d="M2 5H42" strokeWidth="3" />
          </svg>{' '}
          {meanings[freshness]}
        </li>
      ))}
      <li>A line is as thick as its rate, on a logarithmic scale.</li>
    </ul>
  );
}

const meanings = {
  fresh: 'in sync',
  behind: 'loading, or far behind',
  late: 'late: the upstream is away',
} as const;
