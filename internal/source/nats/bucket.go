package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bucket queries the server for one bucket, through one connection. All answers
// come from the leader of the stream: another member of a cluster may lag.
//
// Static after construction.
type bucket struct {
	config    *Config
	conn      *nats.Conn
	meter     *meter
	jetstream jetstream.JetStream
	stream    jetstream.Stream // holds the bucket
	prefix    string           // of the subjects of keys
}

// state is the state of the bucket at one moment.
type state struct {
	created time.Time
	last    uint64 // sequence of the newest message, which may have vanished
	time    time.Time
	keys    int    // that have a message, including deleted ones
	held    bool   // the stream holds messages, whatever their subjects are
	prefix  string // of the subjects of keys
	alone   bool   // nothing else is in the stream, so keys counts the watched keys
	forgets bool   // keys vanish without a message when they expire, or for lack of space
}

// message is a message of the stream.
type message struct {
	sequence uint64 // 0: there is none
	time     time.Time
	subject  string
	header   []byte // as it was sent
	data     []byte
}

// allSubjects is the pattern of all subjects of a stream.
const allSubjects = ">"

// open finds the bucket, and reads its first state.
func (c *Config) open(ctx context.Context, conn *connection) (*bucket, state, error) {
	js, err := jetstream.New(conn.conn)
	if c.Domain != "" {
		js, err = jetstream.NewWithDomain(conn.conn, c.Domain)
	}
	if err != nil {
		return nil, state{}, err
	}
	b := &bucket{config: c, conn: conn.conn, meter: conn.meter, jetstream: js}
	limited, cancel := b.limited(ctx)
	defer cancel()
	if b.stream, err = js.Stream(limited, c.stream()); err != nil {
		return nil, state{}, unanswered(ctx, "the state of the bucket", err)
	}
	info := b.stream.CachedInfo()
	if b.prefix, err = b.prefixOf(ctx, &info.Config); err != nil {
		return nil, state{}, err
	}
	first, err := b.read(info)
	return b, first, err
}

// prefixOf returns the prefix of the subjects of keys. A mirror holds the
// subjects of its origin, which may be a mirror itself, unless it transforms them.
func (b *bucket) prefixOf(ctx context.Context, c *jetstream.StreamConfig) (string, error) {
	if c.Mirror == nil {
		return prefixOfBucket(b.config.Bucket), nil
	}
	for _, t := range c.Mirror.SubjectTransforms {
		if prefix, ok := bucketPrefix(t.Destination); ok {
			return prefix, nil
		}
	}
	newest, err := b.newest(ctx, allSubjects)
	if prefix, ok := bucketPrefix(newest.subject); ok || err != nil {
		return prefix, err
	}
	return prefixOfBucket(strings.TrimPrefix(c.Mirror.Name, "KV_")), nil
}

func prefixOfBucket(bucket string) string { return "$KV." + bucket + "." }

// bucketPrefix returns the prefix of the subjects of keys that a subject has.
func bucketPrefix(subject string) (prefix string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "$KV.")
	bucket, key, cut := strings.Cut(rest, ".")
	if !ok || !cut || key == "" || !validSubject(bucket, false) {
		return "", false
	}
	return prefixOfBucket(bucket), true
}

// stream is the name of the stream that holds the bucket.
func (c *Config) stream() string { return "KV_" + c.Bucket }

// limited sets a request's time limit.
func (b *bucket) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return b.meter.limited(ctx, b.config.StallAfter)
}

// state requests the state of the bucket. It is cheap, however many keys there are.
func (b *bucket) state(ctx context.Context) (state, error) {
	limited, cancel := b.limited(ctx)
	defer cancel()
	info, err := b.stream.Info(limited)
	if err != nil {
		return state{}, unanswered(ctx, "the state of the bucket", err)
	}
	return b.read(info)
}

// keys requests the subjects of all watched keys, and the state a moment before.
func (b *bucket) keys(ctx context.Context, filter string) (state, map[string]uint64, error) {
	limited, cancel := b.limited(ctx)
	defer cancel()
	info, err := b.stream.Info(limited, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return state{}, nil, unanswered(ctx, "the names of all keys", err)
	}
	at, err := b.read(info)
	return at, info.State.Subjects, err
}

// read extracts the relevant part of an answer.
func (b *bucket) read(info *jetstream.StreamInfo) (state, error) {
	if info.Config.MaxMsgsPerSubject < 1 {
		return state{}, fmt.Errorf("stream %q is not a bucket: it does not limit the messages of a subject", b.config.stream())
	}
	own := len(info.Config.Subjects) == 1 && info.Config.Subjects[0] == b.prefix+">"
	return state{
		created: info.Created, last: info.State.LastSeq, time: info.State.LastTime,
		keys: int(info.State.NumSubjects), held: info.State.Msgs > 0, prefix: b.prefix,
		forgets: forgets(&info.Config),
		alone:   b.config.Keys == "" && own && len(info.Config.Sources) == 0,
	}, nil
}

// forgets reports whether keys of a bucket may vanish without a message.
func forgets(c *jetstream.StreamConfig) bool {
	aging := c.MaxAge > 0 || c.AllowMsgTTL
	limited := c.MaxMsgs > 0 || c.MaxBytes > 0
	return aging && c.SubjectDeleteMarkerTTL == 0 || limited && c.Discard == jetstream.DiscardOld
}

// newest requests the newest message of a subject, or of all that match a pattern.
func (b *bucket) newest(ctx context.Context, subject string) (message, error) {
	return b.message(ctx, map[string]any{"last_by_subj": subject})
}

// at requests the message with a sequence.
func (b *bucket) at(ctx context.Context, sequence uint64) (message, error) {
	return b.message(ctx, map[string]any{"seq": sequence})
}

// message queries the leader. The library would query any member where the
// bucket allows it, as buckets do.
func (b *bucket) message(ctx context.Context, which map[string]any) (message, error) {
	request, err := json.Marshal(which)
	if err != nil {
		return message{}, err
	}
	limited, cancel := b.limited(ctx)
	defer cancel()
	answer, err := b.conn.RequestWithContext(limited, b.api("STREAM.MSG.GET."+b.config.stream()), request)
	if err != nil {
		return message{}, unanswered(ctx, "a message", err)
	}
	return readMessage(answer.Data)
}

func (b *bucket) api(subject string) string {
	if b.config.Domain != "" {
		return "$JS." + b.config.Domain + ".API." + subject
	}
	return "$JS.API." + subject
}

// readMessage parses an answer of the server.
func readMessage(answer []byte) (message, error) {
	var read struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(answer, &read); err != nil {
		return message{}, fmt.Errorf("the answer of the server cannot be read: %w", err)
	}
	switch {
	case read.Error != nil && read.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return message{}, nil
	case read.Error != nil:
		return message{}, read.Error
	case read.Message == nil || read.Message.Sequence == 0:
		return message{}, errors.New("the answer of the server has no message")
	}
	m := read.Message
	return message{sequence: m.Sequence, time: m.Time, subject: m.Subject, header: m.Header, data: m.Data}, nil
}
