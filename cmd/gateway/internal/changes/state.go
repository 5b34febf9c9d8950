package changes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/watchtide/watchtide/client"
)

// Subject is what a state belongs to: watches, and which part of them.
type Subject struct {
	Watches []string `json:"watches"` // sorted
	Prefix  string   `json:"prefix,omitempty"`
	Keys    []string `json:"keys,omitempty"` // nil: all
	Labels  string   `json:"labels,omitempty"`
	Filter  string   `json:"filter,omitempty"`
	Fields  []string `json:"fields,omitempty"` // nil: all
	Order   string   `json:"order,omitempty"`
	Limit   int      `json:"limit,omitempty"`
	Offset  int      `json:"offset,omitempty"`
}

// NewSubject returns what the state of these watches belongs to.
func NewSubject(watches []string, v client.View) Subject {
	s := Subject{Watches: slices.Sorted(slices.Values(watches)), Prefix: v.Prefix, Keys: v.Keys, Labels: v.Labels, Filter: v.Filter}
	s.Order, s.Limit, s.Offset = v.Order, v.Limit, v.Offset
	if len(v.Fields) > 0 {
		s.Fields = v.Fields
	}
	return s
}

// format is the version of the format of the file.
const format = 1

// header is the first line of the file.
type header struct {
	Format  int     `json:"watchtide_state"`
	Subject Subject `json:"subject"`
}

// State is a file of lines of JSON: a header, and a [changes.Record] in each other line.
// Records are appended. When the file has become much longer than what it says, it is
// replaced by a shorter one, in one step.
//
// What a crash leaves of the last lines does not matter: without them the state is an earlier
// one, for which the command is run again. So the first line that is damaged ends the file.
//
// Owned by one goroutine; other processes are locked out.
type State struct {
	// Static after construction.
	name    string
	subject Subject
	known   *Known
	unlock  func()

	file  *os.File
	lines int // in the file
}

// slack is how many lines the file may have in vain.
const slack = 1000

// OpenState opens the state in a file, or creates it. all: where nothing is known yet, each
// resource counts as changed.
func OpenState(name string, subject Subject, all bool) (*State, error) {
	unlock, err := lock(name + ".lock")
	if err != nil {
		return nil, fmt.Errorf("the state file %s: %w", name, err)
	}
	s := &State{name: name, subject: subject, known: NewKnown(subject.Watches, all), unlock: unlock}
	err = s.load()
	if err == nil {
		err = s.replace()
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("the state file %s: %w", name, err)
	}
	return s, nil
}

// Known returns what the state says is known. The state reads it whenever it is told of a
// record.
func (s *State) Known() *Known { return s.known }

// Close releases the file.
func (s *State) Close() error {
	defer s.unlock()
	return s.file.Close()
}

// load reads the file, if there is one.
func (s *State) load() error {
	f, err := os.Open(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	first, err := lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(first) == 0 {
		return nil // such as mktemp makes
	}
	if err := s.check(first); err != nil {
		return err
	}
	return s.apply(lines)
}

// check checks the header.
func (s *State) check(line []byte) error {
	var h header
	switch err := json.Unmarshal(line, &h); {
	case err != nil || h.Format == 0:
		return errors.New("this is another kind of file")
	case h.Format != format:
		return fmt.Errorf("it has the format %d, which another version of watchtide writes", h.Format)
	case !reflect.DeepEqual(h.Subject, s.subject):
		return fmt.Errorf("it belongs to other watches or another view, %s: want a file for each", bytes.TrimSpace(line))
	}
	return nil
}

// apply reads records, up to the first one that is damaged.
func (s *State) apply(lines *bufio.Reader) error {
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a line without its end is damaged
		}
		if err != nil {
			return err
		}
		var r Record
		if json.Unmarshal(line, &r) != nil || s.known.Apply(r) != nil {
			return nil
		}
	}
}

// Record appends a record. A pending one is on the disk when Record returns.
func (s *State) Record(r Record) error {
	err := s.append(r)
	if err != nil {
		err = fmt.Errorf("the state file %s: %w", s.name, err)
	}
	return err
}

func (s *State) append(r Record) error {
	if s.lines > 2*s.known.Size()+slack {
		return s.replace() // which has the record too
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return err
	}
	s.lines++
	if !r.Pending {
		return nil
	}
	return s.file.Sync()
}

// replace writes a new file that says what is known, and puts it in the place of the old one.
func (s *State) replace() error {
	temporary := s.name + ".tmp"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	lines, err := s.write(f)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(temporary, s.name)
	}
	if err == nil {
		err = syncDir(filepath.Dir(s.name))
	}
	if err != nil {
		f.Close()
		return err
	}
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.lines = f, lines
	return nil
}

// write writes all lines.
func (s *State) write(f *os.File) (lines int, err error) {
	out := bufio.NewWriterSize(f, 64<<10)
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(header{format, s.subject}); err != nil {
		return 0, err
	}
	for r := range s.known.Records() {
		if err := encoder.Encode(r); err != nil {
			return 0, err
		}
		lines++
	}
	return lines, out.Flush()
}
