// Package quota limits how much one principal may take, wherever it comes from: streams,
// requests, and the room and the processors that its requests use.
package quota
