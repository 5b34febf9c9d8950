//go:build servers

package nats

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/watchtide/watchtide/stream"
)

// purge removes a key from the stream without leaving a message.
func (h *handle) purge(key string) {
	h.t.Helper()
	s, err := h.js.Stream(within(h.t), "KV_"+h.config.Bucket)
	h.must(err)
	h.must(s.Purge(within(h.t), jetstream.WithPurgeSubject("$KV."+h.config.Bucket+"."+key)))
}

// shared makes a bucket on the shared server, and a source of it.
func shared(t *testing.T, c jetstream.KeyValueConfig, options ...func(*Config)) (*handle, *Source) {
	s := server(t)
	b := newClient(t, s.Addr()).bucket(c)
	return b, source(t, s.Addr(), b.config.Bucket, options...)
}

func TestHistoryAndPurge(t *testing.T) {
	for _, history := range []uint8{1, 10} {
		t.Run(fmt.Sprint(history), func(t *testing.T) {
			b, s := shared(t, jetstream.KeyValueConfig{History: history})
			for n := range 5 {
				b.must(b.put("a", strconv.Itoa(n)))
				b.must(b.put("b", strconv.Itoa(n)))
			}
			b.must(b.remove("b"))
			b.must(b.Purge(within(t), "c"))
			first := start(t, s, nil).has("a", "4").resets(1)
			b.must(b.put("b", "5"))
			first.has("a", "4", "b", "5")
			b.must(b.Purge(within(t), "a"))
			first.has("b", "5").resets(1).stop()
			for n := range 5 {
				b.must(b.put("a", strconv.Itoa(n)))
			}
			b.must(b.Purge(within(t), "b"))
			b.must(b.put("c", "6"))
			start(t, s, first).has("a", "4", "c", "6")
		})
	}
}

// A key that an administrator removes from the stream leaves no message.
func TestPurgeFromTheStream(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	for _, key := range []string{"a", "b", "c", "d"} {
		b.must(b.put(key, "1"))
	}
	first := start(t, s, nil).has("a", "1", "b", "1", "c", "1", "d", "1")
	b.purge("a")
	first.has("b", "1", "c", "1", "d", "1").resets(1).stop()
	b.purge("b")
	second := start(t, s, first).has("c", "1", "d", "1").resets(0)
	b.purge("d") // the newest message, which identifies the bucket
	second.has("c", "1").stop()
	third := start(t, s, second).has("c", "1")
	b.must(b.put("e", "1"))
	third.has("c", "1", "e", "1")
	if a, b := first.Resume().Epoch, third.Resume().Epoch; a != b {
		t.Errorf("the epoch was %s and is %s", a, b)
	}
}

// A reader that disconnected before a key vanished is informed of it.
func TestMarkersThatVanish(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{})
	b.must(b.put("a", "1"))
	b.must(b.put("b", "1"))
	first := start(t, s, nil).has("a", "1", "b", "1").stop()
	b.must(b.remove("a"))
	b.must(b.PurgeDeletes(within(t), jetstream.DeleteMarkersOlderThan(-1)))
	b.must(b.put("c", "1"))
	start(t, s, first).has("b", "1", "c", "1")
}

func TestTTL(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, s := shared(t, jetstream.KeyValueConfig{TTL: 1500 * time.Millisecond})
	b.must(b.put("a", "1"))
	r := start(t, s, nil).has("a", "1")
	r.has().resets(1)
	b.must(b.put("b", "1"))
	r.has("b", "1").stop()
	other := start(t, source(t, server(t).Addr(), b.config.Bucket), nil).has("b", "1")
	if a, b := r.Resume().Epoch, other.Resume().Epoch; a == b {
		t.Errorf("two processes name the order %s, though a sequence does not determine the keys", a)
	}
	third := start(t, source(t, server(t).Addr(), b.config.Bucket), r).has("b", "1")
	if c := third.Resume().Epoch; c == r.Resume().Epoch || c == other.Resume().Epoch || third.Resets() != 1 {
		t.Errorf("another process that goes on names the order %s too, after %d snapshots", c, third.Resets())
	}
	fourth := start(t, source(t, server(t).Addr(), b.config.Bucket), r).has("b", "1")
	if c := fourth.Resume().Epoch; c == third.Resume().Epoch {
		t.Errorf("two processes that go on name the order %s", c)
	}
	again := start(t, s, r)
	again.has().stop()
	if a, b := r.Resume().Epoch, again.Resume().Epoch; a != b {
		t.Errorf("the epoch was %s and is %s for the same process", a, b)
	}
}

// With markers an expired key leaves a message, so all agree.
func TestTTLWithMarkers(t *testing.T) {
	t.Parallel() // it waits most of the time
	b, s := shared(t, jetstream.KeyValueConfig{LimitMarkerTTL: time.Second}, func(c *Config) { c.PollInterval = time.Hour })
	b.must(b.put("stays", "1"))
	_, err := b.Create(within(t), "goes", []byte("1"), jetstream.KeyTTL(time.Second))
	b.must(err)
	r := start(t, s, nil).has("stays", "1", "goes", "1")
	r.has("stays", "1")
	if got := r.Resume().Revision; got != 3 {
		t.Errorf("revision %d, want 3, that of the marker", got)
	}
	other := start(t, source(t, server(t).Addr(), b.config.Bucket), nil).has("stays", "1")
	if a, b := r.Resume().Epoch, other.Resume().Epoch; a != b {
		t.Errorf("the epoch is %s for one process and %s for another", a, b)
	}
}

func TestKeys(t *testing.T) {
	b, s := shared(t, jetstream.KeyValueConfig{}, func(c *Config) { c.Keys = "eu.*.price" })
	b.must(b.put("eu.a.price", "1"))
	b.must(b.put("eu.a.name", "1"))
	b.must(b.put("us.a.price", "1"))
	r := start(t, s, nil).has("eu.a.price", "1")
	b.must(b.put("eu.b.price", "2"))
	b.must(b.remove("us.a.price"))
	r.has("eu.a.price", "1", "eu.b.price", "2")
	r.until(func() string { // writes to other keys are progress
		if got := r.Resume().Revision; got != 5 {
			return fmt.Sprintf("revision %d, want 5", got)
		}
		return ""
	})
	b.purge("eu.a.price")
	r.has("eu.b.price", "2").resets(1).stop()
	b.must(b.put("us.b.price", "3"))
	b.must(b.remove("eu.b.price"))
	start(t, s, r).has()
}

// A mirror has the keys, under the subjects of its origin.
func TestMirror(t *testing.T) {
	origin, _ := shared(t, jetstream.KeyValueConfig{})
	origin.must(origin.put("a", "1"))
	mirror := origin.client.bucket(jetstream.KeyValueConfig{
		Bucket: bucketName(t), Mirror: &jetstream.StreamSource{Name: origin.config.Bucket},
	})
	r := start(t, source(t, server(t).Addr(), mirror.config.Bucket), nil).has("a", "1")
	origin.must(origin.put("b", "2"))
	r.has("a", "1", "b", "2")
	origin.must(origin.remove("a"))
	r.has("b", "2").resets(1)
}

// rawStream makes a bucket whose stream has settings that a client does not set.
func (c *client) rawStream(name string, change func(*jetstream.StreamConfig)) {
	c.t.Helper()
	config := jetstream.StreamConfig{
		Name: "KV_" + name, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
		AllowRollup: true, DenyDelete: true, AllowDirect: true,
	}
	change(&config)
	if _, err := c.js.CreateStream(within(c.t), config); err != nil {
		c.t.Fatal(err)
	}
}

// A mirror that transforms the subjects of its origin has its own.
func TestMirrorThatTransforms(t *testing.T) {
	origin, _ := shared(t, jetstream.KeyValueConfig{})
	name, from := bucketName(t), "$KV."+origin.config.Bucket+"."
	origin.must(origin.put("m1", "1"))
	origin.must(origin.put("m2", "2"))
	origin.client.rawStream(name, func(c *jetstream.StreamConfig) {
		c.Mirror = &jetstream.StreamSource{Name: "KV_" + origin.config.Bucket,
			SubjectTransforms: []jetstream.SubjectTransformConfig{{Source: from + "m2", Destination: "$KV." + name + ".m2"}}}
	})
	r := start(t, source(t, server(t).Addr(), name), nil).has("m2", "2")
	origin.must(origin.put("m1", "3"))
	origin.must(origin.put("m2", "4"))
	r.has("m2", "4").resets(1)
}

// A mirror of a mirror has the keys, under the subjects of the first origin.
func TestMirrorOfAMirror(t *testing.T) {
	origin, _ := shared(t, jetstream.KeyValueConfig{})
	origin.must(origin.put("a", "1"))
	first := origin.client.bucket(jetstream.KeyValueConfig{
		Bucket: bucketName(t), Mirror: &jetstream.StreamSource{Name: origin.config.Bucket},
	})
	start(t, source(t, server(t).Addr(), first.config.Bucket), nil).has("a", "1").stop()
	second := origin.client.bucket(jetstream.KeyValueConfig{
		Bucket: bucketName(t), Mirror: &jetstream.StreamSource{Name: first.config.Bucket},
	})
	mirrored, err := second.js.Stream(within(t), "KV_"+second.config.Bucket)
	second.must(err)
	for ctx, err := within(t), error(jetstream.ErrMsgNotFound); err != nil; second.must(ctx.Err()) {
		_, err = mirrored.GetLastMsgForSubject(ctx, "$KV."+origin.config.Bucket+".a")
	}
	r := start(t, source(t, server(t).Addr(), second.config.Bucket), nil).has("a", "1")
	origin.must(origin.put("b", "2"))
	r.has("a", "1", "b", "2")
}

// A bucket that gets the messages of another one, under the subjects of that one,
// has no keys, and is not in sync.
func TestForeignSubjects(t *testing.T) {
	origin, _ := shared(t, jetstream.KeyValueConfig{})
	origin.must(origin.put("a", "1"))
	name := bucketName(t)
	origin.client.rawStream(name, func(c *jetstream.StreamConfig) {
		c.Subjects = []string{"$KV." + name + ".>"}
		c.Sources = []*jetstream.StreamSource{{Name: "KV_" + origin.config.Bucket}}
	})
	s := source(t, server(t).Addr(), name, func(c *Config) { c.PollInterval = 100 * time.Millisecond })
	err := s.Watch(within(t), stream.Resume{}, &calls{})
	if err == nil || !strings.Contains(err.Error(), "no key is in the bucket") || !strings.Contains(err.Error(), origin.config.Bucket) {
		t.Errorf("got the error %v", err)
	}
}

// recognises makes a source one that goes on for another process, where a run has ended. gone is the delete that the
// process remembers; "": none.
func recognises(s *Source, r *run, gone string) *Source {
	var resources, deletes []stream.Resource
	for key, v := range r.State() {
		resources = append(resources, stream.Resource{Key: key, Revision: v.Revision, Value: []byte(v.Value)})
	}
	if gone != "" {
		deletes = append(deletes, stream.Resource{Key: gone, Revision: r.Resume().Revision})
	}
	s.Recognise(r.Resume(), slices.Values(resources), slices.Values(deletes))
	return s
}

// TestOfAnotherProcess: the source goes on by sequence if the message at that place is the one that the other
// process has read. What has vanished meanwhile is deleted.
func TestOfAnotherProcess(t *testing.T) {
	for name, test := range map[string]struct {
		last   func(b *handle) error // the last change that the first process reads
		gone   string                // the delete that it remembers
		after  func(b *handle) error
		resets int
	}{
		"a value":                      {func(b *handle) error { return b.put("z", "1") }, "", nil, 0},
		"a delete":                     {func(b *handle) error { return b.remove("z") }, "z", nil, 0},
		"a delete that is forgotten":   {func(b *handle) error { return b.remove("z") }, "", nil, 1},
		"a delete of something else":   {func(b *handle) error { return b.remove("z") }, "y", nil, 1},
		"a value that was overwritten": {func(b *handle) error { return b.put("z", "1") }, "", func(b *handle) error { return b.put("z", "2") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, s := shared(t, jetstream.KeyValueConfig{}, func(c *Config) { c.PollInterval = MinPollInterval })
			for _, key := range []string{"a", "b", "c", "z"} {
				b.must(b.put(key, "1"))
			}
			b.must(b.remove("b"))
			b.must(test.last(b))
			first := start(t, s, nil)
			first.until(func() string {
				if at := first.Resume().Revision; at < 6 {
					return fmt.Sprint("it is at ", at)
				}
				return ""
			})
			first.stop()
			want := values(first.State())
			b.must(b.put("d", "1"))
			b.purge("c")
			delete(want, "c")
			want["d"] = "1"
			if test.after != nil {
				b.must(test.after(b))
				want["z"] = "2"
			}
			second := source(t, server(t).Addr(), b.config.Bucket, func(c *Config) { c.PollInterval = MinPollInterval })
			r := start(t, recognises(second, first, test.gone), first)
			has := func() {
				t.Helper()
				var pairs []string
				for key, value := range want {
					pairs = append(pairs, key, value)
				}
				r.has(pairs...)
			}
			has()
			b.must(b.put("b", "2")) // its marker was among the messages, which the other process knew
			want["b"] = "2"
			has()
			b.purge("a") // polls go on
			delete(want, "a")
			has()
			r.resets(test.resets)
			if a, b := first.Resume().Epoch, r.Resume().Epoch; a != b {
				t.Errorf("the epoch was %s and is %s", a, b)
			}
		})
	}
}
