package watch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchtide/watchtide/internal/log"
	"github.com/watchtide/watchtide/stream"
)

// said returns the incidents without their times.
func said(w *Watch) (all []string) {
	for _, i := range w.Incidents() {
		all = append(all, fmt.Sprintf("%s %s %d %s", i.Kind, i.Reason, i.Times, i.Detail))
	}
	return all
}

func TestIncidents(t *testing.T) {
	bubble(t, Config{}, []stream.SourceFunc{
		fail(errBroken),
		fail(errBroken),
		fail(errBroken),
		snapshotThen("e", 1, nil, stayFor(2*time.Minute, nil)),
		snapshotThen("e", 1, nil, stayFor(2*time.Minute, errBroken)),
		snapshotThen("f", 1, nil, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		begin := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		before := []string{"resync initial 1 ", "reconnect error 3 " + errBroken.Error()}
		if got := said(w); !slices.Equal(got, before) {
			t.Errorf("after the first snapshot: %q", got)
		}
		if i := w.Incidents()[1]; !i.First.Equal(begin) || !i.At.After(begin) {
			t.Errorf("three times in a row: %+v", i)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		want := slices.Concat([]string{
			"resync epoch_changed 1 ",
			"reconnect error 1 " + errBroken.Error(),
			"resync reconnect 1 ",
			"reconnect ended 1 the upstream ended the stream",
		}, before)
		if got := said(w); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// An upstream that keeps failing in new ways takes no more memory for it.
func TestIncidentsAreBounded(t *testing.T) {
	var in published
	for i := range 3 * maxIncidents {
		in.recordIncident(IncidentReconnect, "error", fmt.Sprint(i))
	}
	all := in.recordedIncidents()
	if len(all) != maxIncidents || all[0].Detail != "299" || all[maxIncidents-1].Detail != "200" {
		t.Errorf("%d incidents, from %.5s to %.5s", len(all), all[0].Detail, all[len(all)-1].Detail)
	}
}

func TestChangesAreCounted(t *testing.T) {
	upsert := func(key string, revision uint64) log.Change {
		return log.Change{Resource: stream.Resource{Key: key, Revision: revision, Value: []byte("1")}}
	}
	bubble(t, Config{}, []stream.SourceFunc{
		snapshotThen("e", 2, []log.Change{upsert("a", 1), upsert("b", 2)}, stayFor(time.Minute, nil)),
		snapshotThen("e", 4, []log.Change{upsert("a", 3), upsert("c", 4)}, stayFor(time.Minute, nil)),
		snapshotThen("f", 1, []log.Change{upsert("a", 1)}, stay),
	}, func(t *testing.T, w *Watch, _ *script) {
		for _, want := range []uint64{0, 3, 3} { // a and c changed, b is gone
			synctest.Wait()
			if got := w.Changes(); got != want {
				t.Errorf("%d changes, want %d", got, want)
			}
			time.Sleep(time.Minute + 10*time.Second)
		}
	})
}
