// Package kubernetes follows the objects of one resource of a Kubernetes API
// server: of any group and version, in one namespace or in all, narrowed by label
// and field selectors.
//
// # What is sent
//
// The key is namespace/name, or name where there is no namespace. The revision is
// the resourceVersion, compared as a number, as Kubernetes documents since 1.35 and
// etcd has always done; a server whose resourceVersions are not numbers is rejected
// with [stream.ErrInvalid]. A deletion has the resourceVersion of the deletion. The
// value is the object's JSON as the server wrote it, digits and order included,
// without metadata.managedFields. Kubernetes has no transactions: each event is
// one.
//
// client-go finds and refreshes the credentials: contexts, token files, client
// certificates, exec plugins, the service account of a pod. The requests are made
// here and not by its dynamic client, which would decode and re-encode every
// object.
//
// # Snapshots
//
// The streaming list (a watch with sendInitialEvents) is a snapshot, a marker and
// the watch in one request, and is cheapest for the server. A server that rejects
// it, or sends no marker, gets a list in pages and a watch from there; that is
// remembered until the Source is recreated. The same goes for a server that speaks
// only HTTP/1.1, where the two could not share a connection that is probed.
//
// # Resuming
//
// The server ends a watch every few minutes, and a watch also ends whenever a
// connection is lost. It resumes from the resourceVersion that was reached, within
// the same call of Watch if it ended in good order. Before that the server's
// current resourceVersion is read, since a watch from a resourceVersion that the
// server never reached is not rejected: it is silent. A server that is behind its
// earlier answers was restored or replaced, and its order gets a new name.
//
// There is no marker after the events that a resumed watch repeats. It counts as
// caught up when it reaches the resourceVersion that the server had at the start,
// or when nothing arrives for four times as long as the server took to answer, plus
// 200 ms.
//
// # Epoch
//
// The name of the order is a hash of the collection and of the cluster. The cluster
// is identified by the uid of the namespace kube-system, by convention; where that
// may not be read or does not exist, by the uid of the resource's
// CustomResourceDefinition; where that may not be read either, by the server's
// address and authority. Every replica with the same rights computes the same name.
// A CustomResourceDefinition that is deleted and recreated is in the same order as
// before, so that subscribers get deletions and creations, and nothing else; unless
// its uid is the only identification.
//
// A restored etcd has the cluster's old uid. Then the server is behind, or
// [stream.Sink] finds objects older than those it has ([stream.ErrBehind]), and the
// name gets a random suffix; a Source remembers how far each order advanced.
// Another replica that connects to the cluster only afterwards cannot detect the
// restore: it resumes a position from before the restore if the cluster's revision
// has passed it. Kubernetes recommends restoring with a raised revision (etcdutl
// snapshot restore --bump-revision), which avoids all of this.
//
// # A connection that is open but dead
//
// Over HTTP/2 a ping is sent when nothing arrives for half of StallAfter, and must
// be answered within the other half. Over HTTP/1.1 a watch is short, twice
// StallAfter, and must end on time.
package kubernetes
