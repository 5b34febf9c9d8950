// Command dictionaries measures whether a dictionary is worth it for snapshots (RFC 9842): a client
// that has an older snapshot is sent the new one in zstd, with the old one as the dictionary. It
// prints sizes and CPU times, beside those of gzip and zstd without one, and of a resume, which
// sends only what has changed.
//
//	curl 'http://localhost:8080/v1/watches/NAME/events?until=end_of_snapshot&format=ndjson' > NAME.ndjson
//	go run ./dictionaries NAME.ndjson
//
// Without files it measures a state that it makes.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

// shares are how much of the state changes, in percent.
var shares = []int{1, 10, 50}

// piece is how much the gateway compresses at once, for all clients.
const piece = 64 << 10

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "dictionaries:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "state\tchanged\tKiB\tgzip\tzstd\tdictionary, fastest\tdefault\tbetter\tresume, gzip")
	if len(files) == 0 {
		measure(w, "made", made(20_000))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines := upserts(text)
		if len(lines) == 0 {
			return fmt.Errorf("%s has no upserts: want a snapshot in NDJSON", file)
		}
		measure(w, strings.TrimSuffix(filepath.Base(file), ".ndjson"), lines)
	}
	return w.Flush()
}

// upserts returns the lines of a snapshot that have resources.
func upserts(text []byte) (lines [][]byte) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(`{"type":"upsert"`)) {
			lines = append(lines, line)
		}
	}
	return lines
}

// made returns resources of 300 bytes that are similar but not equal.
func made(n int) (lines [][]byte) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		lines = append(lines, fmt.Appendf(nil, `{"type":"upsert","watch":"services","key":"default/web-%06d","revision":"%d","value":{"name":"web-%06d","state":"running","ip":"10.%d.%d.%d","ports":[{"name":"http","port":8080},{"name":"grpc","port":%d}],"checked":%d,"uid":"%08x-%08x","cpu":%d}}`+"\n",
			i, 100_000+i, i, random.IntN(255), random.IntN(255), random.IntN(255), 9000+random.IntN(500), 1_790_000_000+i, random.Uint32(), random.Uint32(), random.IntN(1000)))
	}
	return lines
}

var (
	revision = regexp.MustCompile(`"revision":"\d+"`)
	number   = regexp.MustCompile(`\d+`)
)

// changed returns the snapshot after a share of the resources has changed, and what has changed alone. A snapshot is in the
// order of the revisions, so it comes last.
func changed(lines [][]byte, percent int) (all, news []byte) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, line := range lines {
		if random.IntN(100) >= percent {
			all = append(all, line...)
			continue
		}
		head, value, _ := bytes.Cut(line, []byte(`"value":`))
		head = revision.ReplaceAll(head, fmt.Appendf(nil, `"revision":"%d"`, 9_000_000+i))
		numbers := number.FindAllIndex(value, -1)
		for range min(2, len(numbers)) {
			at := numbers[random.IntN(len(numbers))]
			for j := at[0]; j < at[1]; j++ {
				value[j] = byte('1' + random.IntN(9))
			}
		}
		news = append(append(append(news, head...), `"value":`...), value...)
	}
	return append(all, news...), news
}

func measure(w *tabwriter.Writer, name string, lines [][]byte) {
	before := bytes.Join(lines, nil)
	for _, percent := range shares {
		now, news := changed(bytes.SplitAfter(bytes.Clone(before), []byte("\n")), percent)
		fmt.Fprintf(w, "%s\t%d %%\t%d\t%s\t%s", name, percent, len(now)>>10, inGzip(now), inZstd(now))
		for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression} {
			fmt.Fprintf(w, "\t%s", withDictionary(level, before, now))
		}
		fmt.Fprintf(w, "\t%s\n", inGzip(news))
	}
}

// cost is what it costs to send a text.
type cost struct {
	bytes int
	took  time.Duration
}

// String returns the KiB and the milliseconds.
func (c cost) String() string {
	return strconv.FormatFloat(float64(c.bytes)/1024, 'f', 1, 64) + " · " + strconv.FormatFloat(float64(c.took.Microseconds())/1000, 'f', 1, 64) + " ms"
}

// least returns the cost of the fastest of some tries.
func least(try func() int) (c cost) {
	for i := range 5 {
		began := time.Now()
		c.bytes = try()
		if took := time.Since(began); i == 0 || took < c.took {
			c.took = took
		}
	}
	return c
}

// inGzip returns the cost of the pieces of the gateway.
func inGzip(text []byte) cost {
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, 3)
	if err != nil {
		panic(err) // never: the level is valid
	}
	return least(func() (size int) {
		for left := text; len(left) > 0; left = left[min(len(left), piece):] {
			out.Reset()
			z.Reset(&out)
			_, _ = z.Write(left[:min(len(left), piece)]) // a buffer takes everything
			_ = z.Flush()
			size += out.Len()
		}
		return size
	})
}

func inZstd(text []byte) cost {
	e := encoder(zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(256<<10))
	defer e.Close()
	var out []byte
	return least(func() (size int) {
		for left := text; len(left) > 0; left = left[min(len(left), piece):] {
			out = e.EncodeAll(left[:min(len(left), piece)], out[:0])
			size += len(out)
		}
		return size
	})
}

// withDictionary returns the cost of a text as one frame, for a client that has another one. It
// includes the time to read the dictionary, since each client has a different one.
func withDictionary(level zstd.EncoderLevel, dictionary, text []byte) cost {
	window := 8 << 20
	for window < len(dictionary)+len(text) {
		window *= 2
	}
	var out []byte
	c := least(func() int {
		e := encoder(zstd.WithEncoderLevel(level), zstd.WithWindowSize(window), zstd.WithEncoderDictRaw(1, dictionary))
		defer e.Close()
		out = e.EncodeAll(text, out[:0])
		return len(out)
	})
	d, err := zstd.NewReader(nil, zstd.WithDecoderDictRaw(1, dictionary), zstd.WithDecoderMaxWindow(1<<30))
	if err != nil {
		panic(err)
	}
	defer d.Close()
	if got, err := d.DecodeAll(out, nil); err != nil || !bytes.Equal(got, text) {
		panic(fmt.Sprintf("a frame of %d bytes is not the text: %v", len(out), err))
	}
	return c
}

func encoder(options ...zstd.EOption) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		panic(err) // never: the options are valid
	}
	return e
}
