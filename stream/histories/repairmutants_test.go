package histories

// repairMutants are faults of what finds out what differs from a digest: of the Go client, and of a gateway that follows another
// one.
var repairMutants = []mutant{
	{
		name: "the client takes the id over before it has verified",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/watch.go",
			old:  "\tfor _, e := range covered {\n\t\tif err := f.verified(",
			new:  "\tf.id = e.ID\n\tfor _, e := range covered {\n\t\tif err := f.verified(",
		}},
	},
	{
		name: "the client keeps what its server does not have",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\tdelete(r.upserts, id)\n\t\tr.deletes[id] = struct{}{}\n",
			new:  "\t\t_ = id\n",
		}},
	},
	{
		name: "the client does not tell what its server does not have",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\tif err := tell(repairing(Delete, r.watch, gone)); err != nil {\n",
			new:  "\t\tif err := error(nil); err != nil {\n",
		}},
	},
	{
		name: "the client does not tell what it has read",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\tif err := tell(e); err != nil {\n\t\t\treturn err\n\t\t}\n\t\treturn r.Apply(e)\n",
			new:  "\t\treturn r.Apply(e)\n",
		}},
	},
	{
		name: "the client compares what it shows, not what it has received",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\treturn r.pendingDigest().String() == of\n",
			new:  "\treturn r.digest.String() == of\n",
		}},
	},
	{
		name: "the client compares what it has received, not what it holds",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\tif _, replaced := r.upserts[id]; !r.cleared && !deleted && !replaced {\n",
			new:  "\t\tif _, replaced := r.upserts[id]; !r.cleared && !deleted && !replaced && len(r.upserts) == 0 {\n",
		}},
	},
	{
		name: "the rows of all watches are compared with the digest of one",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\tr := h.of[e.Watch]\n\tif r == nil {",
			new:  "\tr := h.of[f.watches[0]]\n\tif r == nil {",
		}},
	},
	{
		name: "what was handed over is held only once more comes",
		rare: true,
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\t\tr.keep()\n",
			new:  "\t\t\t_ = r\n",
		}},
	},
	{
		name: "the client takes a state that is gone for one that it holds",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\tcase isGone(err):\n\t\treturn fmt.Errorf(\"%w: %v\", errStateGone, err)\n",
			new:  "\tcase isGone(err):\n\t\treturn nil\n",
		}},
	},
	{
		name: "the client takes a server without an answer for equal",
		args: []string{"-repairs"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\tcase errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTooDifferent):\n\t\treturn fmt",
			new:  "\tcase errors.Is(err, ErrUnavailable):\n\t\treturn nil\n\tcase errors.Is(err, ErrTooDifferent):\n\t\treturn fmt",
		}},
	},
	{
		name:  "what a failed repair read is handed over with the next",
		tests: "client",
		args:  []string{"-test.run", "^(TestVerifyingHandsOverWhole)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\th.next, h.repaired = nil, 0\n\t\treturn err\n",
			new:  "\t\treturn err\n",
		}},
	},
	{
		name:  "the rows of other watches stay as they came when a repair fails",
		tests: "client",
		args:  []string{"-test.run", "^(TestRowsOfOtherWatchesAreHandedOver)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\tfor _, r := range h.of {\n\t\t\tr.rollBack()\n\t\t}\n",
			new:  "\t\th.of[e.Watch].rollBack()\n",
		}},
	},
	{
		name:  "a repair that fails keeps what came before it",
		tests: "client",
		args:  []string{"-test.run", "^(TestVerifyingHandsOverWhole)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\tclear(r.upserts)\n\tclear(r.deletes)\n\tr.cleared, r.reached = false, r.revision\n",
			new:  "\tr.reached = r.revision\n",
		}},
	},
	{
		name:  "the client goes on with the id of what it has dropped",
		tests: "client",
		args:  []string{"-test.run", "^(TestNoDigestIsEverRight|TestStateThatIsGone)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\t\t\t\t\tf.id = replacePlace(f.id, r.watch, placeOf(r.rollBack(), r.watch))\n",
			new:  "\t\t\t\t\tr.rollBack()\n",
		}},
	},
	{
		name:  "the client does not ask another replica",
		tests: "client",
		args:  []string{"-test.run", "^(TestStateOfAnotherReplica)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "isGone(err) && elsewhere < mostElsewhere &&",
			new:  "isGone(err) && elsewhere < 0 &&",
		}},
	},
	{
		name:  "the client does not compare what it has read with the digest",
		tests: "client",
		args:  []string{"-test.run", "^(TestHostileDigests)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "\tif err == nil && !r.matches(at.Digest) {\n",
			new:  "\tif err == nil && at.Digest == \"\" {\n",
		}},
	},
	{
		name:  "the client does not compare the counts of buckets",
		tests: "client",
		args:  []string{"-test.run", "^(TestCountsOfBuckets)$"},
		edits: []edit{{
			file: "client/verify.go",
			old:  "uint32(mine[b].count) != binary.LittleEndian.Uint32(at) || ",
			new:  "",
		}},
	},
	{
		name:  "the client verifies without end",
		tests: "client",
		args:  []string{"-test.run", "^(TestHostileDigests)$"},
		edits: []edit{{
			file: "client/watch.go",
			old:  "of.failed++; of.failed < mostUnverified {",
			new:  "of.failed++; of.failed > 0 {",
		}},
	},
	{
		name:  "a gateway forgets what came while it verified",
		tests: "internal/source/gateway",
		args:  []string{"-test.run", "^(TestWhatComesMeanwhileWaits|TestWaiting.*)$"},
		edits: []edit{{
			file: "internal/source/gateway/digest.go",
			old:  "range r.waiting.forget(r.Sink)[1:] {",
			new:  "range r.waiting.forget(r.Sink)[:0] {",
		}},
	},
	{
		name:  "a gateway keeps what the followed one does not have",
		tests: "internal/source/gateway",
		args:  []string{"-test.run", "^(TestRepairedAtABookmark)$"},
		edits: []edit{{
			file: "internal/source/gateway/digest.go",
			old:  "other || extra[id] {",
			new:  "other || extra[\"\"] {",
		}},
	},
	{
		name:  "a gateway verifies without end",
		tests: "internal/source/gateway",
		edits: []edit{{
			file: "internal/source/gateway/digest.go",
			old:  "return is && m.reader.source.unverified < mostUnverified",
			new:  "return is && m.reader.source.unverified >= 0",
		}},
	},
	{
		name:  "one repair of a gateway follows the other",
		tests: "internal/source/gateway",
		args:  []string{"-test.run", "^(TestDifferenceThatStays|TestAlteredAgainAndAgain)$"},
		edits: []edit{{
			file: "internal/source/gateway/repair.go",
			old:  "if now.Before(r.next) {",
			new:  "if false && now.Before(r.next) {",
		}},
	},
	{
		name:  "a gateway compares what a conflated bookmark says",
		tests: "internal/source/gateway",
		args:  []string{"-test.run", "^(TestNotCompared)$"},
		edits: []edit{{
			file: "internal/source/gateway/repair.go",
			old:  ` || e.Conflated != ""`,
			new:  "",
		}},
	},
	{
		name:  "a gateway keeps the revisions of another order",
		tests: "internal/source/gateway",
		edits: []edit{{
			file: "internal/source/gateway/digest.go",
			old:  "revisions: !live && !r.hasRevisions(position)",
			new:  "revisions: live && r.hasRevisions(position)",
		}},
	},
}
