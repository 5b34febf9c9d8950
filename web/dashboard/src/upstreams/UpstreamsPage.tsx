/** How the connections to the upstreams fare. */
export function UpstreamsPage() {
  return <h2>Upstreams</h2>;
}
