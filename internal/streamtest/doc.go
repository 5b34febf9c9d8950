// Package streamtest has the common parts of the tests of package stream and of its
// sources.
//
//   - [Scripted] is a source that plays a list of [Step]s, call by call, for
//     tests of one situation.
//   - [Upstream] is a whole upstream in memory that remembers everything it
//     ever was. Any number of [Replica]s of it are sources: each lags, cuts,
//     refuses, compacts and forgets as told.
//   - [ViewUpstream] has resources that enter and leave views, and [TruthOfView] is what
//     a view of an upstream has.
//   - [Connection] is a subscriber that writes down exactly what it was sent,
//     and when; [State] is what a client of four lines makes of it. One that
//     resumes by digest makes its requests one by one: [Connection.Repair].
//   - [History] is both sides together, and there is one checker for each of
//     the ten guarantees of the protocol: [CheckConsistent], [CheckGapless],
//     [CheckOrdered], [CheckAtomic], [CheckResumable], [CheckConflating],
//     [CheckResynchronising], [CheckFresh], [CheckMonotonic] and
//     [CheckConfidential]. The error of a checker is the guarantee, and then
//     what broke it. [CheckAll] runs them all.
//
// Nothing here sleeps, and everything reads the clock through package time: it all
// works inside a testing/synctest bubble, where time is free and exact, and outside
// of one.
package streamtest
