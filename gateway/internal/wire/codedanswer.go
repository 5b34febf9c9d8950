package wire

import (
	"net/http"
	"slices"
)

const (
	// codedPiece is how much of an answer is compressed at once, and kept.
	codedPiece = 128 << 10
	// codedAtLeast is how long an answer must be to be compressed.
	codedAtLeast = 1 << 10
)

// EncodeAnswer returns an answer in the coding, and in which coding it is: one that is short, or does not
// become shorter, is left as it is.
func (c Coding) EncodeAnswer(text []byte) ([]byte, Coding) {
	if c == Identity || len(text) < codedAtLeast {
		return text, Identity
	}
	var sum Sum
	body := []byte(c.Head())
	for part := range slices.Chunk(text, codedPiece) {
		p := c.Compress([][]byte{part})
		body, sum = append(body, p.Bytes...), sum.Then(p.Sum)
	}
	if body = c.AppendEnd(body, sum); len(body) >= len(text) {
		return text, Identity
	}
	return slices.Clip(body), c
}

// CodedAnswer writes the response to a unary request in a content coding, if it has the status 200 and is long enough. Its pieces
// are found by their content, so that equal ones are compressed once for all.
//
// Owned by the goroutine of the request.
type CodedAnswer struct {
	*answerWriter
	coding Coding
	head   bool // the request is HEAD
	pieces *Cache
	turn   func(func()) error // calls a function once there is a processor for it

	begun, coded bool
	sum          Sum
	sent         int
}

// Coded returns a writer that writes in a coding to w, and is closed in its place. Compressions take
// turns.
func (w *answerWriter) Coded(in Coding, pieces *Cache, turn func(func()) error) *CodedAnswer {
	return &CodedAnswer{answerWriter: w, coding: in, head: w.out.r.Method == http.MethodHead, pieces: pieces, turn: turn}
}

// WriteHeader implements http.ResponseWriter. It is called for what is not a list.
func (w *CodedAnswer) WriteHeader(status int) {
	w.begun = true
	w.answerWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. The first call has the whole answer, or a part that is long enough.
func (w *CodedAnswer) Write(p []byte) (int, error) {
	if !w.begun {
		w.begin(len(p))
	}
	switch {
	case !w.coded:
		return w.answerWriter.Write(p)
	case w.head:
		return len(p), nil
	}
	for part := range slices.Chunk(p, codedPiece) {
		w.add(w.piece(part))
	}
	return len(p), nil
}

func (w *CodedAnswer) begin(size int) {
	w.begun = true
	if w.coding == Identity || size < codedAtLeast {
		return
	}
	w.coded = true
	w.Header().Set("Content-Encoding", w.coding.String())
	w.Header().Del("Content-Length")
	if head := w.coding.Head(); head != "" && !w.head {
		w.add(Piece{Bytes: []byte(head)})
	}
}

// piece returns a part of the answer in the coding. Without a processor it is stored.
func (w *CodedAnswer) piece(part []byte) (p Piece) {
	name := w.pieces.fingerprint.of(part)
	if err := w.turn(func() { p = w.pieces.Piece(w.coding, 0, name, [][]byte{part}) }); err != nil {
		return Piece{Bytes: w.coding.AppendStored(nil, part), Sum: SumOf(part)}
	}
	return p
}

func (w *CodedAnswer) add(p Piece) {
	w.sum = w.sum.Then(p.Sum)
	w.sent += len(p.Bytes)
	_, _ = w.answerWriter.Write(p.Bytes) // it never fails
}

// Close ends the answer, and writes what net/http still buffers.
func (w *CodedAnswer) Close() {
	if w.coded && !w.head {
		if end := w.coding.AppendEnd(nil, w.sum); len(end) > 0 {
			w.add(Piece{Bytes: end})
		}
	}
	w.answerWriter.Close()
}

// Compressed returns how many bytes were compressed, and to how many.
func (w *CodedAnswer) Compressed() (raw, sent int) { return w.sum.Length(), w.sent }
