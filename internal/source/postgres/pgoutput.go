package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// The types of the messages of pgoutput that a source needs.
const (
	msgBegin    = 'B'
	msgCommit   = 'C'
	msgRelation = 'R'
	msgInsert   = 'I'
	msgUpdate   = 'U'
	msgDelete   = 'D'
	msgTruncate = 'T'
)

// How a message has a value.
const (
	cellNull      = 'n'
	cellUnchanged = 'u' // stored out of line, and not changed
	cellText      = 't'
)

// cell is one value of a tuple. Its text aliases the message.
type cell struct {
	kind byte
	text []byte
}

// relation is a table as the stream describes it, before its first change and after it was altered.
type relation struct {
	id      uint32
	columns []relationColumn
}

type relationColumn struct {
	name string
	typ  uint32
}

// change is a change of one row, or the truncation of a table.
type change struct {
	kind     byte
	old, new []cell // nil: the message has none
}

// scanner reads the fields of a message. After a failure all fields are zero.
type scanner struct {
	data []byte
	bad  bool
}

func (s *scanner) take(n int) []byte {
	if s.bad || n < 0 || n > len(s.data) {
		s.bad, s.data = true, nil
		return nil
	}
	field := s.data[:n]
	s.data = s.data[n:]
	return field
}

func (s *scanner) byte() byte {
	if b := s.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (s *scanner) uint16() uint16 {
	if b := s.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (s *scanner) uint32() uint32 {
	if b := s.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (s *scanner) uint64() uint64 {
	if b := s.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// text reads a text that ends with a zero.
func (s *scanner) text() string {
	end := bytes.IndexByte(s.data, 0)
	field := s.take(end + 1)
	if end < 0 || field == nil {
		s.bad, s.data = true, nil
		return ""
	}
	return string(field[:end])
}

// err is the error of a message that is not as it should be.
func (s *scanner) err(kind byte) error {
	if !s.bad {
		return nil
	}
	return fmt.Errorf("%w: a message of type %q ends early", stream.ErrInvalid, kind)
}

// epochStart is the zero of the server's times.
var epochStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// decodeBegin returns where the commit record of a transaction is, and when it was written.
func decodeBegin(message []byte) (lsn uint64, at time.Time, err error) {
	s := scanner{data: message[1:]}
	lsn = s.uint64()
	at = epochStart.Add(time.Duration(int64(s.uint64())) * time.Microsecond)
	if err := s.err(msgBegin); err != nil {
		return 0, time.Time{}, err
	}
	if lsn == 0 {
		return 0, time.Time{}, fmt.Errorf("%w: a transaction at 0", stream.ErrInvalid)
	}
	return lsn, at, nil
}

// decodeCommit returns where a transaction ends.
func decodeCommit(message []byte) (lsn, end uint64, err error) {
	s := scanner{data: message[1:]}
	s.byte() // flags
	lsn, end = s.uint64(), s.uint64()
	return lsn, end, s.err(msgCommit)
}

func decodeRelation(message []byte) (*relation, error) {
	s := scanner{data: message[1:]}
	r := &relation{id: s.uint32()}
	s.text() // schema
	s.text() // name
	s.byte() // replica identity
	for n := s.uint16(); n > 0 && !s.bad; n-- {
		s.byte() // flags
		column := relationColumn{name: s.text(), typ: s.uint32()}
		s.uint32() // type modifier
		r.columns = append(r.columns, column)
	}
	return r, s.err(msgRelation)
}

// relationOf returns the table that a change is of.
func relationOf(message []byte) (uint32, error) {
	s := scanner{data: message[1:]}
	id := s.uint32()
	return id, s.err(message[0])
}

// truncated returns the tables that are truncated.
func truncated(message []byte) ([]uint32, error) {
	s := scanner{data: message[1:]}
	n := s.uint32()
	s.byte() // options
	var all []uint32
	for ; n > 0 && !s.bad; n-- {
		all = append(all, s.uint32())
	}
	return all, s.err(msgTruncate)
}

// decodeChange decodes an insert, an update or a delete.
func decodeChange(message []byte) (change, error) {
	c := change{kind: message[0]}
	s := scanner{data: message[1:]}
	s.uint32()
	for !s.bad && len(s.data) > 0 {
		switch kind := s.byte(); kind {
		case 'K', 'O':
			c.old = s.tuple()
		case 'N':
			c.new = s.tuple()
		default:
			return c, fmt.Errorf("%w: a tuple of type %q", stream.ErrInvalid, kind)
		}
	}
	if err := s.err(c.kind); err != nil {
		return c, err
	}
	if (c.kind == msgDelete) != (c.new == nil) || c.kind == msgDelete && c.old == nil {
		return c, fmt.Errorf("%w: a message of type %q without its row", stream.ErrInvalid, c.kind)
	}
	return c, nil
}

func (s *scanner) tuple() []cell {
	n := int(s.uint16())
	cells := make([]cell, 0, min(n, len(s.data)))
	for ; n > 0 && !s.bad; n-- {
		c := cell{kind: s.byte()}
		switch c.kind {
		case cellText:
			c.text = s.take(int(s.uint32()))
		case cellNull, cellUnchanged:
		default:
			s.bad = true
		}
		cells = append(cells, c)
	}
	return cells
}
