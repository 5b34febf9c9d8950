package histories

import (
	"encoding/json"
	"fmt"
	"github.com/watchtide/watchtide/internal/streamtest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutant is a fault that the code once had, as replacements of texts in files.
type mutant struct {
	name  string
	edits []edit
	args  []string // that narrow the histories
	rare  bool     // it takes minutes to find: only with -all
	// tests are those of a package that find it, in place of the histories: args narrow them. "": the histories do.
	tests string
}

// edit is one text of a file below the module.
type edit struct{ file, old, new string }

// mutants are the faults that the histories must find. Otherwise they would not find
// other faults of their kind either.
var mutants = []mutant{
	{
		name: "a release has ids in the middle",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "(done || !w.whole())",
			new:  "(done || w.purpose != verifying)",
		}},
	},
	{
		name: "a release leaves deletes out",
		edits: []edit{{
			file: "internal/log/release.go",
			old:  "purpose: releasing, deletes: true,",
			new:  "purpose: releasing,",
		}},
	},
	{
		name: "a release leaves out deletes of what the reader has, if it came again",
		edits: []edit{{
			file: "internal/log/walk.go",
			old:  "return before.Is(storage.IsDelete)",
			new:  "return true",
		}},
	},
	{
		name: "a release takes what is not known of a key for nothing",
		edits: []edit{{
			file: "internal/log/walk.go",
			old:  "		case !known:\n			return false\n		case before == nil:",
			new:  "		case !known || before == nil:",
		}},
		rare: true,
	},
	{
		name: "a gateway ignores changes that its upstream gateway may have missed",
		edits: []edit{{
			file: "internal/source/adapter/reader.go",
			old:  "if e.Horizon > 0 && r.begun {",
			new:  "if e.Horizon > 0 && r.begun && r.Watch == \"\" {",
		}},
	},
	{
		name: "a transaction is changed while it is applied",
		edits: []edit{{
			file: "stream/watch/sink.go",
			old:  "	err := <-s.replies\n",
			new:  "	var err error\n	select {\n	case err = <-s.replies:\n	case <-s.ctx.Done():\n		return context.Cause(s.ctx)\n	}\n",
		}},
		args: []string{"-wide"},
	},
	{
		name: "half a transaction survives its request",
		edits: []edit{{
			file: "internal/source/adapter/reader.go",
			old:  "	if r.loose {\n",
			new:  "	if r.loose && r.Watch == \"\" {\n",
		}, {
			file: "internal/log/writer.go",
			old:  "	if err := Check(changes, revision); err != nil {\n",
			new:  "	for _, c := range changes {\n		revision = max(revision, c.Revision)\n	}\n	if err := Check(changes, revision); err != nil {\n",
		}},
	},
	{
		name: "a refused snapshot drops the name of a restored order",
		edits: []edit{{
			file: "stream/watch/ingest.go",
			old:  "		result, err = in.log.ReplaceCompleteTo(epoch, snapshot, m.revision, m.deletesTo)\n	}\n",
			new:  "		result, err = in.log.ReplaceCompleteTo(epoch, snapshot, m.revision, m.deletesTo)\n	} else if m.epoch != in.log.Snapshot().SourceEpoch() {\n		clear(in.aliases)\n	}\n",
		}},
	},
	{
		name: "a position covers deletes without a revision at every replica",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "	from := v.NewerThan(r.DeletesCompleteTo())\n",
			new:  "	from := v.NewerThan(r.AsOf)\n",
		}},
	},
	{
		name: "a run accepts the positions of all runs",
		edits: []edit{{
			file: "internal/storage/run.go",
			old:  "(p.Run == v.Run.Name || v.Run.followed(p))",
			new:  "(p.Run != 0 || v.Run.followed(p))",
		}},
	},
	{
		name: "a run accepts positions below its horizon",
		edits: []edit{{
			file: "internal/storage/run.go",
			old:  " && p.AsOf >= v.Run.Horizon",
			new:  "",
		}},
	},
	{
		name: "another replica does not drop the name of the run",
		args: []string{"-deletes", strconv.Itoa(int(streamtest.Vanishing)), "-detours"},
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "	case r.Run != 0 && r.Run != v.Run.Name:\n",
			new:  "	case r.Run != 0 && r.Run != v.Run.Name && r.Watch == \"\":\n",
		}},
	},
	{
		name: "a delete without a revision is placed before its transaction",
		edits: []edit{{
			file: "internal/log/transaction.go",
			old:  "		return math.MaxUint64\n",
			new:  "		_ = uint64(math.MaxUint64)\n		return p.Before\n",
		}, {
			file: "internal/log/writer.go",
			old:  "		e.Revision = revision\n",
			new:  "		e.Revision = w.next.Revision\n",
		}},
	},
	{
		name: "a delete without a revision loses against an upsert before it",
		edits: []edit{{
			file: "internal/log/transaction.go",
			old:  "	if !c.Deleted && !k.deleted && c.Revision < k.upsert {\n",
			new:  "	if c.Revision < k.upsert {\n",
		}},
	},
	{
		name: "a view does not know that values were left out",
		edits: []edit{{
			file: "internal/source/adapter/reader.go",
			old:  "	if resumed && r.open {\n",
			new:  "	if resumed && r.open && r.Watch == \"\" {\n",
		}},
	},
	{
		name: "a gateway does not tell that changes may lack values",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "		if v.ConflatedSeq > s.cursor && v.Complete() < v.Conflated {",
			new:  "		if v.ConflatedSeq > s.cursor && s.closed {",
		}},
	},
	{
		name: "a view follows changes, and not what it had before them",
		edits: []edit{{
			file: "internal/views/bundle.go",
			old:  "		change.Old = &old\n",
			new:  "		_ = old\n",
		}},
	},
	{
		name: "a stream that leaves its group shares the place of the others",
		edits: []edit{{
			file: "internal/log/cohort.go",
			old:  "	if s.walking() {",
			new:  "	if s.walking() && s.closed {",
		}},
	},
	{
		name: "the digest of a view is that of values before its rules",
		edits: []edit{{
			file: "internal/log/view.go",
			old:  "		to.Content = digest.Of(e.log.framing.Key(e.s, e.e), projected.Value, projected.Encoding)\n",
			new:  "		to.Content = digest.Of(e.log.framing.Key(e.s, e.e), e.Resource().Value, projected.Encoding)\n",
		}},
	},
	{
		name: "a reader that comes from another replica is sent digests where deletes have no revision",
		args: []string{"-deletes", strconv.Itoa(int(streamtest.NoRevision))},
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "	return s.digests() && (s.fromThisLog || ",
			new:  "	return s.digests() && (true || s.fromThisLog || ",
		}},
	},
	{
		name: "a reader goes on after the newest state, not after the one that it verifies",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "		s.cursor = w.v.Seq\n",
			new:  "		if s.cursor = w.v.Seq; w.purpose == verifying {\n			s.cursor = s.log.newest().Seq\n		}\n",
		}},
	},
	{
		name: "a state is sent although deletes after it are forgotten",
		edits: []edit{{
			file: "internal/log/digested.go",
			old:  " && is.Seq >= v.Forgotten &&\n",
			new:  " &&\n",
		}},
	},
	{
		name: "the digest of a catch-up is that of the newest state",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: w.v.Revision, Skipped: skipped}, w.v))\n",
			new:  "		b.addEvent(s.withState(stream.Event{Type: stream.Bookmark, Revision: w.v.Revision, Skipped: skipped}, s.log.newest()))\n",
		}},
	},
	{
		name: "the digest lacks what a change replaces",
		edits: []edit{{
			file: "internal/log/writer.go",
			old:  "	w.next.Digest = w.next.Digest.Sub(e.Content)\n",
			new:  "	w.next.Digest = w.next.Digest.Sub(0)\n",
		}},
	},
	{
		name: "an id among the deletes of a catch-up covers more than it says",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "!w.midTransaction && !w.deletes && (",
			new:  "!w.midTransaction && (",
		}},
	},
	{
		name: "an id of another watch is sent inside a transaction",
		rare: true,
		edits: []edit{{
			file: "gateway/internal/session/session.go",
			old:  "	if s.Batch.Boundary() && !s.uncovered() {\n",
			new:  "	if s.Batch.Boundary() {\n",
		}, {
			file: "gateway/internal/session/session.go",
			old:  "	if f.waits = s.waits(i); f.waits {\n",
			new:  "	if f.waits = s.waits(i) && false; f.waits {\n",
		}},
	},
	{
		name: "a long poll is answered with a part of a transaction",
		edits: []edit{{
			file: "gateway/internal/rest/changes.go",
			old:  "!position.Partial() && !sub.Uncovered()\n",
			new:  "!position.Partial()\n",
		}},
	},
	{
		name: "the client's replica is consistent at the bookmark with which a resume begins",
		rare: true,
		edits: []edit{{
			file: "client/replica.go",
			old:  "	case Bookmark:\n		r.skipping = false\n",
			new:  "	case Bookmark:\n		r.skipping, r.loading = false, !r.progress.Complete\n",
		}},
	},
	{
		name: "the revision of the client's replica goes back with a delete",
		args: []string{"-deletes", strconv.Itoa(int(streamtest.LastSeen))},
		edits: []edit{{
			file: "client/replica.go",
			old:  "n > 0 || n == 0 && revision > r.reached {\n",
			new:  "n != 0 || revision != r.reached {\n",
		}},
	},
	{
		name: "long polls begin again from nothing",
		edits: []edit{{
			file: "gateway/internal/session/request.go",
			old:  "		choice.resume = &p\n",
			new:  "		choice.invalid = transport != \"\"\n",
		}},
	},
	{
		name: "a view tells keys that its reader may never have seen",
		rare: true,
		edits: []edit{{
			file: "internal/views/entry.go",
			old:  "	lacks := e.hides && was == unknown\n",
			new:  "	lacks := e.hides && was == unknown && false\n",
		}},
	},
	{
		name: "what is compacted during a catch-up is subtracted from what was skipped",
		edits: []edit{{
			file: "internal/log/walk.go",
			old:  "		return w.superseded\n",
			new:  "		return uint64(w.v.EntriesFrom(w.v.After(w.began))) - uint64(w.delivered)\n",
		}},
	},
	{
		name: "a slow reader keeps its version",
		rare: true,
		edits: []edit{{
			file: "internal/log/internal/pin/pin.go",
			old:  "	if one.pace.rate > 0 && !s.checking {\n",
			new:  "	if one.pace.rate > 1<<40 && !s.checking {\n",
		}},
	},
	{
		name: "a reset in the middle of a catch-up leaves it open",
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "		b.addEvent(s.withState(end, w.v))\n		if behind {\n",
			new:  "		b.addEvent(s.withState(end, w.v))\n		if false {\n",
		}},
	},
	{
		name: "a client that applies each event at once has no exception",
		rare: true,
		edits: []edit{{
			file: "internal/streamtest/ordered.go",
			old:  "leads && a.upTo > s.asOf",
			new:  "leads && a.upTo > s.asOf && false",
		}},
	},
	{
		name: "a journal takes what was written last for the end of the log",
		args: []string{"-journals"},
		edits: []edit{{
			file: "internal/journal/watch.go",
			old:  "	kept = watch.KeptLost\n",
			new:  "	kept = watch.KeptWhole\n",
		}},
	},
	{
		name: "a log whose end is lost goes on with its run",
		args: []string{"-journals"},
		edits: []edit{{
			file: "internal/log/recall.go",
			old:  "{ r.Runs, r.RunHorizon = nil, 0 }",
			new:  "{}",
		}},
	},
	{
		name: "a log that goes on resumes positions from before its horizon",
		args: []string{"-journals"},
		edits: []edit{{
			file: "internal/log/recall.go",
			old:  "	v.Origin, v.OriginPending, v.Horizon, v.HorizonAge = r.Origin, r.OriginPending, r.Horizon, r.HorizonAge\n",
			new:  "	v.Origin, v.OriginPending, v.HorizonAge = r.Origin, r.OriginPending, r.HorizonAge\n",
		}},
	},
	{
		name: "a source goes on after the next change of its upstream",
		args: []string{"-journals"},
		edits: []edit{{
			file: "stream/watch/ingest.go",
			old:  "	return stream.Resume{Epoch: state.SourceEpoch(), Revision: state.Revision(), Del",
			new:  "	if in.health.Since.IsZero() {\n		return stream.Resume{Epoch: state.SourceEpoch(), Revision: state.Revision() + 1}\n	}\n	return stream.Resume{Epoch: state.SourceEpoch(), Revision: state.Revision(), Del",
		}},
	},
	{
		name: "a journal lacks deletes that it has not had time to write",
		args: []string{"-journals"},
		rare: true,
		edits: []edit{{
			file: "internal/journal/write.go",
			old:  "	lacks := p.state.Forgotten() > w.seq && w.seq < p.state.Intact()\n",
			new:  "	lacks := false\n",
		}},
	},
	{
		name: "a journal forgets deletes that still count",
		rare: true,
		args: []string{"-journals"},
		edits: []edit{{
			file: "internal/journal/write.go",
			old:  "t.state.Counting(binary.BigEndian.Uint64(key))",
			new:  "t.state.Counting(binary.BigEndian.Uint64(key)) && t.all",
		}},
	},
	{
		name: "a journal does not write the last moment of a log",
		args: []string{"-journals"},
		edits: []edit{{
			file: "internal/journal/watch.go",
			old:  "	p := w.newest()\n	if p == nil {\n		return\n	}\n	p.ends",
			new:  "	p := w.newest()\n	if p == nil || !p.all && w.stored.Whole {\n		return\n	}\n	p.ends",
		}},
	},
	{
		name: "the name of an order that the upstream broke is lost with the process",
		rare: true,
		args: []string{"-journals"},
		edits: []edit{{
			file: "stream/watch/journal.go",
			old:  "	maps.Copy(in.aliases, j.Aliases())\n",
			new:  "	maps.Copy(in.aliases, map[string]string{})\n",
		}},
	},
	{
		name: "a part of a large state is taken for all of it",
		args: []string{"-journals"},
		rare: true,
		edits: []edit{{
			file: "internal/journal/large.go",
			old:  "		err = t.finish(last)\n",
			new:  "		err = t.finish(true)\n",
		}},
	},
	{
		name: "a delete that a gateway has had is sent again after an outage of its upstream",
		args: []string{"-journals", "-deletes", strconv.Itoa(int(streamtest.OwnRevision)), "-others", "1"},
		rare: true,
		edits: []edit{{
			file: "internal/log/earlier.go",
			old:  "c.Revision > before && (c.Revision > after || w.live(c.Key)) {",
			new:  "c.Revision > before && (c.Revision > after || c.Key != \"\") {",
		}},
	},
	{
		name: "what is stale is stale since its last change",
		args: []string{"-journals"},
		rare: true,
		edits: []edit{{
			file: "stream/watch/journal.go",
			old:  "		in.lost = r.Confirmed()\n",
			new:  "		in.lost = r.Committed\n",
		}},
	},
	{
		name: "what a rule leaves out of values is shown",
		edits: []edit{{
			file: "internal/view/grants.go",
			old:  "		one.keeps.Hide(at)\n",
			new:  "		_ = at\n",
		}},
	},
	{
		name: "a client's filter reads what a rule leaves out of values",
		edits: []edit{{
			file: "internal/view/restricted.go",
			old:  "	if held.whole || !d.labeled && len(d.reads) == 0 {\n",
			new:  "	if held.whole || !d.labeled {\n",
		}},
	},
	{
		name: "what was in a window for a moment is not deleted",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/window.go",
			old:  "		return still\n",
			new:  "		return still || !slices.ContainsFunc(w.shown, func(r row) bool { return r.key() == key })\n",
		}},
	},
	{
		name: "a catch-up says that the view still has what left the window",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/log/walk.go",
			old:  "b.addDelete(s, w.at.Entry)",
			new:  "b.addEntry(s, w.at.Entry)",
		}},
	},
	{
		name: "what was not in a window for a moment is not sent again",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/window.go",
			old:  "known && !changed && !w.returned(r)",
			new:  "known && !changed",
		}},
	},
	{
		name: "a window accepts positions from before it was made",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/log/window.go",
			old:  "	p.Begin(s, epoch, s.v.Revision)",
			new:  "	p.Begin(s, epoch, 0)",
		}},
	},
	{
		name: "a window resumes positions of other replicas where deletes have no revision",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.NoRevision))},
		edits: []edit{{
			file: "internal/log/window.go",
			old:  "p.w.next.Horizon, p.w.next.Run = math.MaxUint64, ",
			new:  "p.w.next.Horizon, p.w.next.Run = math.MaxUint64&1, ",
		}},
	},
	{
		name: "a window that is made again resumes positions of the former one",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.NoRevision))},
		edits: []edit{{
			file: "internal/storage/version.go",
			old:  "		run.Name, run.Former = v.Run.Name, nil\n",
			new:  "",
		}},
	},
	{
		name: "a window resumes at a revision that two states have",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.NoRevision))},
		edits: []edit{{
			file: "internal/views/sorted.go",
			old:  "		if t.unordered && wrote {",
			new:  "		if t.unordered && wrote && false {",
		}},
	},
	{
		name: "a resource that enters a window has the place of its own revision",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/log/window.go",
			old:  "	to, frame := p.appendAt(revision, k, w.framing.Size(&r,",
			new:  "	to, frame := p.appendAt(r.Revision, k, w.framing.Size(&r,",
		}},
	},
	{
		name: "what comes before a window does not move it",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/window.go",
			old:  "	case !w.reaches(old) && !w.reaches(now):",
			new:  "	case !w.reaches(old) && !w.reaches(now) || w.precedes(old) && now == nil:",
		}},
	},
	{
		name: "what enters a window has the place of the newest change",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/window.go",
			old:  "windowChange{max(at, w.came[r.key()]), r.key(), &w.rows[i]}",
			new:  "windowChange{max(at, t.revision), r.key(), &w.rows[i]}",
		}},
	},
	{
		name: "the total of a window that nothing touches stays",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/sorted.go",
			old:  "	if !t.resized && !moved {",
			new:  "	if !moved {",
		}},
	},
	{
		name: "readers are told of a window with its rows only",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/sorted.go",
			old:  "		wrote = t.tell(w, s, now) || wrote\n",
			new:  "		wrote = wrote && t.tell(w, s, now) || wrote\n",
		}},
	},
	{
		name: "a window says of each resource that leaves it that it is still there",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/window.go",
			old:  "		case exists:\n",
			new:  "		case exists || c.key != \"\":\n",
		}},
	},
	{
		name: "a window that has moved is not told of changes where it was not before",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/window.go",
			old:  "		w.of.order.show(came.key(), 1)\n",
			new:  "		w.of.order.show(came.key(), 0)\n",
		}},
	},
	{
		name: "the difference of two windows leaves deletes out",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/log/move.go",
			old:  "	for len(d.gone) > 0 && !b.full() {\n",
			new:  "	if len(d.gone) > 1 {\n		d.gone = d.gone[1:]\n	}\n	for len(d.gone) > 0 && !b.full() {\n",
		}},
	},
	{
		name: "a move ends before its last resource",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/log/move.go",
			old:  "len(d.gone)+len(d.come) == 0",
			new:  "len(d.gone) == 0 && len(d.come) <= 1",
		}},
	},
	{
		name: "a move sends again what both windows have",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/log/move.go",
			old:  "was == nil || was.Is(storage.IsDelete) || was.Seq > f.cursor ||",
			new:  "was == nil || was.Is(storage.IsDelete) || was.Seq > 0 ||",
		}},
	},
	{
		name: "the position after a move is one of the former window",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/log/move.go",
			old:  "	s.join(v)\n",
			new:  "	epoch := s.position.Epoch\n	s.join(v)\n	s.epoch = epoch\n",
		}},
	},
	{
		name: "an id is sent in the middle of a move",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "(done || !w.whole())",
			new:  "(done || !w.whole() || w.purpose == moving)",
		}},
	},
	{
		name: "a stream takes what it has not sent of the former window for sent",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/log/move.go",
			old:  " || was.Seq > f.cursor || was.Content",
			new:  " || was.Content",
		}},
	},
	{
		name: "a position of the former window is resumed in the new one",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/log/subscription.go",
			old:  "	case r.Epoch != v.Epoch:\n",
			new:  "	case r.Epoch != v.Epoch && (!v.Window.Is || r.Epoch == \"\"):\n",
		}},
	},
	{
		name: "a count accepts positions from before it was made",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/log/derived.go",
			old:  "	w.next.Horizon, w.next.HorizonAge = derivedRevision(s.v), s.v.Committed\n",
			new:  "",
		}},
	},
	{
		name: "states that a count has left out are as if they had been seen",
		rare: true,
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/counts.go",
			old:  "lacks = lacks || doubtful || e.Conflated() || e.Revision() != first",
			new:  "lacks = lacks && doubtful",
		}},
	},
	{
		name: "a count goes on with the groups of another generation",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/counts.go",
			old:  "return c.begun && !c.stale && c.primed == newest.Generation() && newest.Forgotten() <= c.seq",
			new:  "return c.begun && !c.stale && newest.Forgotten() <= c.seq",
		}},
	},
	{
		name: "a resource that changes stays in its former group",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/counts.go",
			old:  "	if before != nil {\n		c.tally.add(*before, -1)\n",
			new:  "	if before != nil && e.Deleted() {\n		c.tally.add(*before, -1)\n",
		}},
	},
	{
		name: "a group without resources stays",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/counts.go",
			old:  "				state.Delete(g.key, revision)\n",
			new:  "",
		}},
	},
	{
		name: "a number that is gone is still the least",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/tally.go",
			old:  "		s.least.clean(s.all)\n",
			new:  "",
		}},
	},
	{
		name: "the groups of one transaction are visible one by one",
		args: []string{"-windows", "-deletes", strconv.Itoa(int(streamtest.OwnRevision))},
		edits: []edit{{
			file: "internal/views/counts.go",
			old:  "Value: []byte(now)})\n		}\n",
			new:  "Value: []byte(now)})\n			state.EndTransaction()\n		}\n",
		}},
	},
	{
		name: "a window of a principal is sorted by what that may not see",
		args: []string{"-windows"},
		edits: []edit{{
			file: "internal/views/sorted.go",
			old:  "	if projected == nil {\n",
			new:  "	if projected == nil || t.begun {\n",
		}},
	},
	{
		name: "a part of a snapshot of a window counts below its horizon too",
		args: []string{"-windows"},
		rare: true,
		edits: []edit{{
			file: "internal/log/window.go",
			old:  "	if v.Window.Is && upserts < min(v.Horizon, v.Revision) {\n",
			new:  "	if v.Window.Is && upserts < min(v.Horizon, v.Revision) && false {\n",
		}},
	},
}

// allMutants returns those that the histories find, and those of what resumes by digest.
func allMutants() []mutant { return slices.Concat(mutants, repairMutants) }

// TestMutants builds the histories with a twelfth of the faults each day, or with all, and
// checks that they find them.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("each is compiled without the race detector, and so is all that it needs")
	}
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range allMutants() {
		t.Run(m.name, func(t *testing.T) {
			if !*all && (m.rare || i%12 != time.Now().YearDay()%12) {
				t.Skip("it takes minutes to find, or is due on another day: see -all")
			}
			binary, err := m.build(module, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			found, err := m.play(module, binary)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("found after %v: %s", time.Since(began).Round(100*time.Millisecond), found)
		})
	}
}

// TestMutantsQuoteTheCode: the replaced texts exist.
func TestMutantsQuoteTheCode(t *testing.T) {
	for _, m := range allMutants() {
		if _, err := m.apply("../.."); err != nil {
			t.Errorf("mutant %q: %v", m.name, err)
		}
	}
}

// apply returns the edited files.
func (m *mutant) apply(module string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.edits {
		if _, edited := files[e.file]; !edited {
			source, err := os.ReadFile(filepath.Join(module, e.file))
			if err != nil {
				return nil, err
			}
			files[e.file] = string(source)
		}
		if n := strings.Count(files[e.file], e.old); n != 1 {
			return nil, fmt.Errorf("%s holds a text of the mutant %d times, want once: the code has changed, so change the mutant too:\n%s",
				e.file, n, e.old)
		}
		files[e.file] = strings.Replace(files[e.file], e.old, e.new, 1)
	}
	return files, nil
}

// build builds the test binary of this package, or of that whose tests find it, with the fault.
func (m *mutant) build(module, dir string) (binary string, err error) {
	files, err := m.apply(module)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		mutated := filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(mutated, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(module, file)] = mutated
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "histories.test")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	if m.tests != "" {
		build.Dir = filepath.Join(module, m.tests)
	}
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutant does not build: %w\n%s", err, out)
	}
	return binary, nil
}

// play plays histories until one fails or panics, or runs tests. The error reports that none did.
func (m *mutant) play(module, binary string) (found string, err error) {
	if m.tests != "" {
		return m.test(module, binary)
	}
	args := append([]string{"-test.run", "^TestHistories$", "-histories", "100000", "-shrink", "0", "-for", "8m", "-longest", "1m"}, m.args...)
	out, err := exec.Command(binary, args...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if _, after, ok := strings.Cut(line, "seed "); ok && err != nil {
			return strings.TrimSpace("seed " + after), nil
		}
		if strings.HasPrefix(line, "panic: ") && err != nil {
			return strings.TrimSpace(line), nil // memory that is read while it is written
		}
	}
	return "", fmt.Errorf("not found (%w): %s", err, out)
}

// test runs the tests of another package until one fails.
func (m *mutant) test(module, binary string) (found string, err error) {
	run := exec.Command(binary, append([]string{"-test.failfast"}, m.args...)...)
	run.Dir = filepath.Join(module, m.tests)
	out, err := run.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if _, after, ok := strings.Cut(line, "--- FAIL: "); ok && err != nil {
			return strings.TrimSpace(after), nil
		}
	}
	return "", fmt.Errorf("not found (%w): %s", err, out)
}
