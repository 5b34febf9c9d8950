package store

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/watchtide/watchtide/stream"
)

// filledFile makes a closed file, and returns what the watch notes has, its epoch and its newest revision.
func filledFile(t *testing.T, path string) (has map[string]string, epoch string, newest uint64) {
	s := reopen(t, path)
	w := s.Writer("notes")
	for i := range 50 {
		write(t, w, fmt.Sprint("k", i), fmt.Sprintf(`{"n":%d,"html":"<b>&"}`, i))
	}
	write(t, w, "\xff", "1")
	write(t, s.Writer("other"), "k", "2")
	write(t, w, "gone", "3")
	if _, err := w.Delete(background, stream.DeleteRequest{Key: "gone"}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return state(s), epochOf(s, "notes"), 54
}

func TestExportAndImport(t *testing.T) {
	path, again := newFile(t), newFile(t)
	has, epoch, newest := filledFile(t, path)
	var lines bytes.Buffer
	if n, err := Export(path, &lines); n != 52 || err != nil {
		t.Fatalf("%d resources, error %v", n, err)
	}
	if n, err := Import(again, bytes.NewReader(lines.Bytes())); n != 52 || err != nil {
		t.Fatalf("%d resources, error %v", n, err)
	}
	r, err := Check(again)
	if err != nil || r.Revision != newest || len(r.Watches) != 2 || r.Watches[0].Resources != 51 || r.Watches[0].Deletes != 0 || r.FileBytes == 0 {
		t.Errorf("%+v, error %v", r, err)
	}
	s := reopen(t, again)
	if got := state(s); !maps.Equal(got, has) {
		t.Errorf("it has %v, want %v", got, has)
	}
	if epochOf(s, "notes") == epoch {
		t.Error("the epoch is that of the exported file")
	}
	if got := write(t, s.Writer("notes"), "more", "1").Revision; got != newest+1 {
		t.Errorf("revision %d, want %d", got, newest+1)
	}
	s.Close()
	if _, err := Import(again, bytes.NewReader(lines.Bytes())); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("into a file that exists: %v", err)
	}
}

func TestImportsThatAreRefused(t *testing.T) {
	const end = "\n" + `{"end":1}`
	for name, test := range map[string]struct{ lines, want string }{
		"cut off":         {`{"watchtide_store":1,"revision":3}` + "\n" + `{"watch":"a","key":"k","revision":1,"value":1}`, "ends at line 2 without its last line"},
		"too few":         {`{"watch":"a","key":"k","value":1}` + "\n" + `{"end":2}`, "line 2: it ends after 2 resources, 1 came"},
		"more":            {`{"watch":"a","key":"k","value":1}` + end + "\n{}", "line 3: there is more"},
		"no JSON":         {"text", "line 1: "},
		"no key":          {`{"watch":"a","value":1}` + end, "line 1: key"},
		"no value":        {`{"watch":"a","key":"k"}` + end, "line 1: the value of key"},
		"no watch":        {`{"key":"k","value":1}` + end, "line 1: "},
		"twice":           {`{"watch":"a","key":"k","value":1}` + "\n" + `{"watch":"a","key":"k","value":1}` + end, "line 2: key \"k\" of watch a comes a second time"},
		"revision twice":  {`{"watch":"a","key":"k","revision":5,"value":1}` + "\n" + `{"watch":"b","key":"k","revision":5,"value":1}` + end, "line 2: revision 5"},
		"a newer format":  {`{"watchtide_store":2}`, "formats up to 1"},
		"a long key":      {`{"watch":"a","key":"` + strings.Repeat("k", MaxKeyBytes+1) + `","value":1}` + end, "line 1: key"},
		"a wrong keycode": {`{"watch":"a","key":"k","key_encoding":"rot13","value":1}` + end, "line 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			_, err := Import(path, strings.NewReader(test.lines))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			for _, one := range []string{path, path + ".state"} {
				if _, err := os.Lstat(one); err == nil {
					t.Errorf("%s is left", one)
				}
			}
		})
	}
}

// TestCompact: nothing of what was deleted or replaced is left in the file, and all else is as it was.
func TestCompact(t *testing.T) {
	path := newFile(t)
	has, epoch, newest := filledFile(t, path)
	s := reopen(t, path)
	w := s.Writer("notes")
	write(t, w, "secret", strconv.Quote(strings.Repeat("replaced ", 1_000)))
	write(t, w, "secret", strconv.Quote(strings.Repeat("deleted ", 1_000)))
	if _, err := w.Delete(background, stream.DeleteRequest{Key: "secret"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Compact(path); err == nil || !strings.Contains(err.Error(), "has it open") {
		t.Errorf("a file in use: %v", err)
	}
	s.Close()
	left := func() int {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(raw, []byte("deleted ")) + bytes.Count(raw, []byte("replaced "))
	}
	if left() == 0 {
		t.Fatal("the file does not have what it had: the test shows nothing")
	}
	before, after, err := Compact(path)
	if err != nil || after > before || left() != 0 {
		t.Errorf("%d bytes, before %d, error %v; %d pieces are left", after, before, err, left())
	}
	s = reopen(t, path)
	defer s.Close()
	if got := state(s); !maps.Equal(got, has) || epochOf(s, "notes") != epoch {
		t.Errorf("it has %v, want %v; epoch %s, want %s", got, has, epochOf(s, "notes"), epoch)
	}
	if got := write(t, s.Writer("notes"), "more", "1").Revision; got != newest+4 {
		t.Errorf("revision %d, want %d", got, newest+4)
	}
	if _, _, err := Compact(newFile(t)); err == nil {
		t.Error("a file that is missing was compacted")
	}
}

// TestAFileInUseIsNotRead: what is being written cannot be checked.
func TestAFileInUseIsNotRead(t *testing.T) {
	path := newFile(t)
	write(t, reopen(t, path).Writer("notes"), "k", "1")
	_, err := Check(path)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid(), " has it open")) {
		t.Errorf("error %v, want the number of this process", err)
	}
}

// TestMissingRecordsAreFound: a file whose pages are whole, and which lacks a resource.
func TestMissingRecordsAreFound(t *testing.T) {
	path := newFile(t)
	filledFile(t, path)
	s := reopen(t, path)
	for _, name := range []string{"notes", "other"} {
		s.find(name).stored.Entries.Sum++
	}
	write(t, s.Writer("notes"), "k", "1")
	s.Close()
	if _, err := Check(path); err == nil || !strings.Contains(err.Error(), "is damaged: key \"notes\" of bucket \"/watches\": its 52 resources are not those") {
		t.Errorf("error %v", err)
	}
	if s, err := Open(Config{Path: path}); err == nil {
		s.Close()
		t.Error("it was opened")
	}
}
