package disk

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
)

// lineage is what is known beside a file of the file that was there last.
type lineage struct {
	ID         string
	Generation uint64 // of the last Open
	Sequence   uint64 // that the file has at least
	PID        int    // of the process that has it open, or had it
	Closed     bool   // it was closed, not left
}

// state is the small file beside the file. It is locked while the file is open. It is written without
// waiting for the disk: after a loss of power it may be older than the file, never newer, since
// it is written after the file is on the disk.
type state struct {
	file *os.File // static
	now  lineage
}

// InUseError reports that another process has the file open.
type InUseError struct {
	Path string
	PID  int // 0: it is not known
}

// Error names the process.
func (e *InUseError) Error() string {
	if e.PID == 0 {
		return "another process has it open"
	}
	return fmt.Sprintf("process %d has it open: end that one first, or give this one another path", e.PID)
}

// stateFormat is what line writes.
const stateFormat = "watchtide 1 id=%s generation=%d sequence=%d pid=%d closed=%t"

// lockState opens and locks the file at a path, and returns what it says; nil: nothing.
func lockState(path string) (*state, *lineage, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, nil, err
	}
	s := &state{file: file}
	err = lock(file)
	before := s.read()
	if err == nil {
		return s, before, nil
	}
	_ = file.Close()
	if !errors.Is(err, errLocked) {
		return nil, nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return nil, nil, inUse(path)
}

// inUse returns the error of a file that another process has open, which wrote its number into the file
// at a path.
func inUse(path string) *InUseError {
	used := &InUseError{Path: path}
	if file, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0); err == nil {
		defer file.Close()
		if l := (&state{file: file}).read(); l != nil {
			used.PID = l.PID
		}
	}
	return used
}

// read returns what the file says; nil: it is new, or damaged.
func (s *state) read() *lineage {
	raw, err := io.ReadAll(io.NewSectionReader(s.file, 0, stateBytes))
	if err != nil || len(raw) < stateBytes {
		return nil
	}
	var sum uint32
	if _, err := fmt.Sscanf(string(raw[stateBytes-9:]), "%08x\n", &sum); err != nil || sum != crc32.Checksum(raw[:stateBytes-9], castagnoli) {
		return nil
	}
	var l lineage
	if _, err := fmt.Sscanf(string(raw), stateFormat, &l.ID, &l.Generation, &l.Sequence, &l.PID, &l.Closed); err != nil {
		return nil
	}
	return &l
}

// stateBytes is the length of the file: one line, which is written at once.
const stateBytes = 160

// line returns the content of the file.
func (l *lineage) line() []byte {
	b := make([]byte, 0, stateBytes)
	b = append(append(b, "watchtide 1 id="...), l.ID...)
	b = strconv.AppendUint(append(b, " generation="...), l.Generation, 10)
	b = strconv.AppendUint(append(b, " sequence="...), l.Sequence, 10)
	b = strconv.AppendInt(append(b, " pid="...), int64(l.PID), 10)
	b = strconv.AppendBool(append(b, " closed="...), l.Closed)
	for len(b) < stateBytes-9 {
		b = append(b, ' ')
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(b, castagnoli))
	return append(hex.AppendEncode(b, sum), '\n')
}

// write is called at each transaction, so it is fast.
func (s *state) write() error {
	_, err := s.file.WriteAt(s.now.line(), 0)
	return err
}

// begin records that the file is open.
func (s *state) begin(l lineage) error {
	l.PID = os.Getpid()
	s.now = l
	if err := s.write(); err != nil {
		return fmt.Errorf("%s: %w", s.file.Name(), err)
	}
	return s.file.Sync()
}

// advance records that a number is on the disk.
func (s *state) advance(sequence uint64) {
	s.now.Sequence = sequence
	_ = s.write() // it may be behind
}

// end records that the file was closed, and unlocks it.
func (s *state) end(whole bool) {
	s.now.Closed = whole
	if s.write() == nil {
		_ = s.file.Sync()
	}
	s.close()
}

func (s *state) close() { _ = s.file.Close() }

// restored says why a file with a header is another than the one that was there last; "": it is not.
// A file is written before what is beside it, so it may be one generation ahead.
func (h *header) restored(last *lineage, birth string, sequence uint64) string {
	switch {
	case last == nil:
		return "nothing beside it says that it was here before"
	case last.ID != h.ID:
		return "another file was here before"
	case h.Generation != last.Generation && h.Generation != last.Generation+1:
		return fmt.Sprintf("it was opened %d times, and the file that was here %d times", h.Generation, last.Generation)
	case sequence < last.Sequence:
		return fmt.Sprintf("it ends at revision %d, and the file that was here had %d", sequence, last.Sequence)
	case birth != h.Birth:
		return "it is a copy: another file of the file system"
	}
	return ""
}
