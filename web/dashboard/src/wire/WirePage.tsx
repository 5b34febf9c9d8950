/** The events of a stream as they come. */
export function WirePage({ watch }: { watch: string }) {
  return <h2>{watch}</h2>;
}
