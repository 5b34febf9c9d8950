package postgres

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/watchtide/watchtide/stream"
)

// wire builds messages.
type wire []byte

func (w wire) u16(n uint16) wire  { return binary.BigEndian.AppendUint16(w, n) }
func (w wire) u32(n uint32) wire  { return binary.BigEndian.AppendUint32(w, n) }
func (w wire) u64(n uint64) wire  { return binary.BigEndian.AppendUint64(w, n) }
func (w wire) text(s string) wire { return append(append(w, s...), 0) }
func (w wire) value(s string) wire {
	return append(append(w, cellText).u32(uint32(len(s))), s...)
}

func TestDecodeTransaction(t *testing.T) {
	at := time.Date(2026, 11, 27, 1, 2, 3, 4000, time.UTC)
	begin := wire{msgBegin}.u64(0x16B3748).u64(uint64(at.Sub(epochStart).Microseconds())).u32(7)
	if lsn, made, err := decodeBegin(begin); lsn != 0x16B3748 || !made.Equal(at) || err != nil {
		t.Errorf("begin at %d, %v, %v", lsn, made, err)
	}
	if _, _, err := decodeBegin(wire{msgBegin}.u64(0).u64(0).u32(7)); !errors.Is(err, stream.ErrInvalid) {
		t.Errorf("begin at 0: %v", err)
	}
	commit := append(wire{msgCommit}, 0).u64(5).u64(9).u64(0)
	if lsn, end, err := decodeCommit(commit); lsn != 5 || end != 9 || err != nil {
		t.Errorf("commit at %d, ends at %d, %v", lsn, end, err)
	}
}

func TestDecodeChanges(t *testing.T) {
	relationMessage := append(append(wire{msgRelation}.u32(3).text("public").text("t"), 'd').u16(1), 1).text("id").u32(23).u32(0)
	r, err := decodeRelation(relationMessage)
	if want := (&relation{3, []relationColumn{{"id", 23}}}); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("relation %+v, %v, want %+v", r, err, want)
	}
	update := append(append(wire{msgUpdate}.u32(3), 'K').u16(1).value("1"), 'N').u16(2).value("2")
	update = append(update, cellUnchanged)
	c, err := decodeChange(update)
	want := change{msgUpdate, []cell{{cellText, []byte("1")}}, []cell{{cellText, []byte("2")}, {kind: cellUnchanged}}}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("update %+v, %v, want %+v", c, err, want)
	}
	ids, err := truncated(append(wire{msgTruncate}.u32(2), 0).u32(3).u32(4))
	if err != nil || !reflect.DeepEqual(ids, []uint32{3, 4}) {
		t.Errorf("truncate %v, %v", ids, err)
	}
	for name, message := range map[string][]byte{
		"an insert without a row":  wire{msgInsert}.u32(3),
		"a delete with a new row":  append(wire{msgDelete}.u32(3), 'N').u16(0),
		"a delete without a row":   wire{msgDelete}.u32(3),
		"a tuple of another type":  append(wire{msgInsert}.u32(3), 'X').u16(0),
		"a value of another kind":  append(append(wire{msgInsert}.u32(3), 'N').u16(1), 'b'),
		"a value that ends early":  append(append(wire{msgInsert}.u32(3), 'N').u16(1), cellText).u32(1 << 31),
		"more columns than values": append(wire{msgInsert}.u32(3), 'N').u16(65535),
	} {
		if _, err := decodeChange(message); !errors.Is(err, stream.ErrInvalid) {
			t.Errorf("%s: %v, want %v", name, err, stream.ErrInvalid)
		}
	}
}

// FuzzMessage: no message makes the decoders fail in another way than with an error, or allocate more
// than it has.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(append(append(wire{msgInsert}.u32(3), 'N').u16(1).value("1"), 0)))
	f.Add([]byte(wire{msgBegin}.u64(1).u64(2).u32(3)))
	f.Add([]byte(append(wire{msgCommit}, 0).u64(5).u64(9).u64(0)))
	f.Add([]byte(append(append(wire{msgRelation}.u32(3).text("public").text("t"), 'd').u16(1), 1).text("id").u32(23).u32(0)))
	f.Add([]byte(append(wire{msgTruncate}.u32(2), 0).u32(3).u32(4)))
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) == 0 {
			return
		}
		if c, err := decodeChange(message); err == nil && len(c.old)+len(c.new) > len(message) {
			t.Errorf("%d values of %d bytes", len(c.old)+len(c.new), len(message))
		}
		if r, err := decodeRelation(message); err == nil && len(r.columns) > len(message) {
			t.Errorf("%d columns of %d bytes", len(r.columns), len(message))
		}
		if ids, err := truncated(message); err == nil && len(ids) > len(message) {
			t.Errorf("%d tables of %d bytes", len(ids), len(message))
		}
		_, _, _ = decodeBegin(message)
		_, _, _ = decodeCommit(message)
		_, _ = decodeCopy(message)
	})
}
