import { request } from 'node:http';

/** Returns the bytes of a snapshot on the wire, compressed as for a browser and counted by the proxy. */
export async function snapshotBytes(proxy, watch) {
  proxy.reset();
  await new Promise((resolve, reject) => {
    const headers = { Accept: 'text/event-stream', 'Accept-Encoding': 'gzip, deflate, br, zstd' };
    request(`${proxy.origin}/v1/events?watch=${watch}&until=end_of_snapshot`, { headers, agent: false }, (response) => {
      response.resume().on('end', resolve).on('error', reject);
    })
      .on('error', reject)
      .end();
  });
  const bytes = proxy.toBrowser;
  proxy.reset();
  return bytes;
}
