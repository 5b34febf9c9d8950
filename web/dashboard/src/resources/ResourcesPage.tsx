import { useStore } from '../gateway/tide';

/** One watch: its resources. */
export function ResourcesPage({ watch }: { watch: string }) {
  const store = useStore(watch);
  return <h2>{watch} {store?.state}</h2>;
}
