// Package kubesource follows the objects of one resource of a Kubernetes API
// server: of any group and version, in one namespace or in all, narrowed by
// label and field selectors.
//
// # What is sent
//
// The key is namespace/name, or name where there is no namespace. The revision is
// the resourceVersion, compared as a number, as Kubernetes documents since 1.35
// and etcd has always done; a server whose resourceVersions are no numbers is
// refused with [stream.ErrInvalid]. A deletion has the resourceVersion of the
// deletion. The value is the object's JSON as the server wrote it, digits and
// order included, without metadata.managedFields. Kubernetes has no transactions:
// each event is one.
//
// client-go finds and refreshes the credentials: contexts, token files, client
// certificates, exec plugins, the service account of a pod. The requests are made
// here and not by its dynamic client, which would take every object apart and put
// it together again.
//
// # Snapshots
//
// The streaming list (a watch with sendInitialEvents) is a snapshot, a marker and
// the watch in one request, and costs the server the least. A server that refuses
// it, or sends no marker, gets a list in pages and a watch from there; that is
// remembered until the Source is made anew. So does a server that speaks only
// HTTP/1.1, where the two could not share a connection that is probed.
//
// # Going on
//
// A watch ends by the server's clock every few minutes, and whenever a connection
// is lost. It goes on from the resourceVersion that was reached, within the same
// call of Watch if it ended in good order. Before that the server is asked where
// it is now, since a watch from a resourceVersion that the server never reached
// is not refused: it is silent. A server that is behind what it said before was
// restored or replaced, and its order gets a new name.
//
// There is no marker behind what a resumed watch repeats. It counts as caught up
// when the resourceVersion is reached that the server had at the beginning, or
// when nothing comes for four times as long as the server took to answer, plus
// 200 ms.
//
// # Epoch
//
// The name of the order is a hash of the collection and of the cluster: by the
// uid of the namespace kube-system, which is what identifies a cluster by
// convention; where it may not be read or is not there, by the uid of the
// resource's CustomResourceDefinition; where that may not be read either, by the
// server's address and authority. Every replica with the same rights makes the
// same name. A CustomResourceDefinition that is deleted and made again is in the
// same order as before, so that subscribers are told of deletions and creations,
// and nothing else; unless its uid is all there is.
//
// A restored etcd has the cluster's old uid. Then the server is behind, or
// [stream.Sink] finds objects older than it knows ([stream.ErrBehind]), and the
// name gets a random ending; a Source remembers how far each order came. Another
// replica that learns of the cluster only afterwards does not know of that: a
// position from before the restore, given to it, is resumed if the cluster's
// revision has passed it. Kubernetes recommends to restore with a raised revision
// (etcdutl snapshot restore --bump-revision), and nothing of this arises.
//
// # A connection that is open and dead
//
// Over HTTP/2 a ping is sent when nothing came for half of StallAfter, and must be
// answered in the other half. Over HTTP/1.1 a watch is short, twice StallAfter, and
// must end on time.
package kubesource
