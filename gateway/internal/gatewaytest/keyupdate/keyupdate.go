// Package keyupdate has a client of TLS 1.3 that updates its keys (RFC 8446, section 4.6.3), as OpenSSL does
// and crypto/tls does not.
package keyupdate

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"
)

// Types of content.
const (
	alertRecord       = 21
	handshakeRecord   = 22
	applicationRecord = 23
)

// headBytes is the size of the head of a record, and answerBytes that of what follows it in an update of keys: the
// message, the type of the content, and the tag.
const (
	headBytes   = 5
	answerBytes = 5 + 1 + 16
)

// Client is one end of a connection. crypto/tls reads from it, and follows the updates of the server; Client writes to it.
//
// One goroutine may read, and another one may use the rest.
type Client struct {
	*tls.Conn
	seen *records

	secret []byte
	aead   cipher.AEAD
	iv     []byte
	number uint64 // of the next record
	buffer []byte
}

// New does the handshake of a connection.
func New(c net.Conn, config *tls.Config) (*Client, error) {
	var keys bytes.Buffer
	config = config.Clone()
	config.MinVersion, config.KeyLogWriter = tls.VersionTLS13, &keys
	seen := &records{Conn: c}
	secure := tls.Client(seen, config)
	if err := secure.Handshake(); err != nil {
		return nil, err
	}
	out := &Client{Conn: secure, seen: seen}
	for line := range strings.Lines(keys.String()) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(fields[2])
			if err != nil {
				return nil, err
			}
			return out, out.use(secret)
		}
	}
	return nil, errors.New("the log of keys has no CLIENT_TRAFFIC_SECRET_0")
}

// use makes the keys of a secret (RFC 8446, section 7.3). The first record that has them is number 0.
func (c *Client) use(secret []byte) (err error) {
	c.secret, c.number = secret, 0
	if c.iv, err = expand(secret, "iv", 12); err != nil {
		return err
	}
	size := 16
	suite := c.ConnectionState().CipherSuite
	if suite == tls.TLS_CHACHA20_POLY1305_SHA256 {
		size = chacha20poly1305.KeySize
	}
	key, err := expand(secret, "key", size)
	if err != nil {
		return err
	}
	switch suite {
	case tls.TLS_CHACHA20_POLY1305_SHA256:
		c.aead, err = chacha20poly1305.New(key)
	case tls.TLS_AES_128_GCM_SHA256:
		var block cipher.Block
		if block, err = aes.NewCipher(key); err == nil {
			c.aead, err = cipher.NewGCM(block)
		}
	default:
		err = fmt.Errorf("the cipher suite is %s: want one with SHA-256", tls.CipherSuiteName(suite))
	}
	return err
}

// expand is HKDF-Expand-Label without a context (RFC 8446, section 7.1).
func expand(secret []byte, label string, length int) ([]byte, error) {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(info, byte(len(label))), label...)
	return hkdf.Expand(sha256.New, secret, string(append(info, 0)), length)
}

// add appends a record to the buffer.
func (c *Client) add(content []byte, kind byte) {
	inner := append(bytes.Clone(content), kind)
	head := binary.BigEndian.AppendUint16([]byte{applicationRecord, 3, 3}, uint16(len(inner)+c.aead.Overhead()))
	nonce := bytes.Clone(c.iv)
	for i := range 8 {
		nonce[4+i] ^= byte(c.number >> (56 - 8*i))
	}
	c.number++
	c.buffer = c.aead.Seal(append(c.buffer, head...), nonce, inner, head)
}

// Add prepares a record of data.
func (c *Client) Add(p []byte) { c.add(p, applicationRecord) }

// AddHandshake prepares a record of a message of the handshake, or of a part of it.
func (c *Client) AddHandshake(p []byte) { c.add(p, handshakeRecord) }

// AddUpdate prepares an update of the keys, which the server answers with one of its own if that is requested. What
// is prepared next has the new keys.
func (c *Client) AddUpdate(requested bool) error {
	update := []byte{24, 0, 0, 1, 0}
	if requested {
		update[4] = 1
	}
	c.add(update, handshakeRecord)
	secret, err := expand(c.secret, "traffic upd", sha256.Size)
	if err != nil {
		return err
	}
	return c.use(secret)
}

// Flush sends what is prepared.
func (c *Client) Flush() error {
	_, err := c.seen.Conn.Write(c.buffer)
	c.buffer = c.buffer[:0]
	return err
}

// Write sends data.
func (c *Client) Write(p []byte) (int, error) {
	c.Add(p)
	return len(p), c.Flush()
}

// CloseWrite sends the alert that ends the side of the client.
func (c *Client) CloseWrite() error {
	c.add([]byte{1, 0}, alertRecord) // close_notify
	return c.Flush()
}

// Update updates the keys.
func (c *Client) Update(requested bool) error {
	if err := c.AddUpdate(requested); err != nil {
		return err
	}
	return c.Flush()
}

// Answers returns how many updates of the server were read so far. A record of data that has five bytes counts as one.
func (c *Client) Answers() int {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	return c.seen.answers
}

// records is a connection that looks at the records that are read.
type records struct {
	net.Conn

	mu      sync.Mutex // guards the following fields
	head    []byte     // of the record that is being read, as far as it was read
	left    int        // of its content
	answers int
}

// Read implements net.Conn.
func (r *records) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	for p = p[:n]; len(p) > 0; {
		if r.left > 0 {
			skipped := min(r.left, len(p))
			r.left, p = r.left-skipped, p[skipped:]
			continue
		}
		more := min(headBytes-len(r.head), len(p))
		r.head, p = append(r.head, p[:more]...), p[more:]
		if len(r.head) < headBytes {
			break
		}
		r.left = int(binary.BigEndian.Uint16(r.head[3:]))
		if r.head[0] == applicationRecord && r.left == answerBytes {
			r.answers++
		}
		r.head = r.head[:0]
	}
	return n, err
}
