/** Who is connected. */
export function SubscribersPage() {
  return <h2>Subscribers</h2>;
}
