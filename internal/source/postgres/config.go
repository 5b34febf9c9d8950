package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/watchtide/watchtide/stream"
)

const (
	// DefaultPublication is the default of Config.Publication.
	DefaultPublication = "watchtide"
	// DefaultStallAfter is the default of Config.StallAfter.
	DefaultStallAfter = 10 * time.Second
	// MinStallAfter leaves time for an answer from a busy server.
	MinStallAfter = time.Second
	// DefaultMaxRetainedWAL is the default of Config.MaxRetainedWAL.
	DefaultMaxRetainedWAL = 10 << 30
	// MinMaxRetainedWAL is a segment of WAL, of which a slot always keeps one.
	MinMaxRetainedWAL = 16 << 20
)

// Config specifies how a database is reached. The fields with a key are those of a source of type
// "postgres" in a configuration file.
type Config struct {
	// URL names the database; see ValidURL. Required.
	URL string `yaml:"url,required,is=postgres url"`
	// PasswordFile holds the password of the user in URL. It is read for each connection.
	PasswordFile string `yaml:"password_file,is=file of a secret"`
	// TLS secures the connections; with certificates in it, mutually. nil: as sslmode in URL says.
	TLS *tls.Config `yaml:"tls"`
	// Publication is the publication that has the tables. "": DefaultPublication.
	Publication string `yaml:"publication,is=postgres publication"`
	// Manage has the gateway create the publication, and add tables to it.
	Manage bool `yaml:"manage"`
	// StallAfter is how long the server may be silent. It is asked for an answer three times as
	// often. 0: DefaultStallAfter; at least MinStallAfter.
	StallAfter time.Duration `yaml:"stall_after,min=1s"`
	// Slot is the name of a permanent replication slot, with which a source goes on where it was. It is
	// made if there is none. "": a temporary one.
	Slot string `yaml:"slot,is=postgres slot"`
	// Failover has standbys keep the permanent slot too. It needs PostgreSQL 17.
	Failover bool `yaml:"failover"`
	// MaxRetainedWAL is how many bytes of WAL the server may keep for a slot, before it is given up.
	// 0: DefaultMaxRetainedWAL; at least MinMaxRetainedWAL.
	MaxRetainedWAL int64 `yaml:"max_retained_wal,min=16MiB"`
	// Logger logs what happens to slots. nil: slog.Default.
	Logger *slog.Logger `yaml:"-"`

	// network, if set, makes the connections: tests have one in memory.
	network func(ctx context.Context, network, address string) (net.Conn, error)
	// checkEvery, if set, is how often tables are checked.
	checkEvery time.Duration
	// slotTimeout, if set, is how long the server may take to make a slot: it waits for the
	// transactions that are open.
	slotTimeout time.Duration
}

// Table specifies what a watch has of a database. The fields with a key are those of a watch.
type Table struct {
	// Name is the table, with its schema if that is not public. Required.
	Name string `yaml:"table,required,is=postgres table"`
	// Key are the columns that identify a row. Empty: the primary key.
	Key []string `yaml:"key,is=postgres column"`
	// Columns are the columns that are served. Empty: all that the publication has.
	Columns []string `yaml:"columns,is=postgres column"`
	// Where is the row filter that the publication has to have for the table, in SQL. "": any.
	Where string `yaml:"where,is=expression"`

	// Unmanaged means that the table is never added to the publication: clients choose it.
	Unmanaged bool `yaml:"-"`
}

// Descriptions of valid texts, for error messages.
const (
	WantURL         = `postgres://user@host:port/database, without a password, which password_file has`
	WantTable       = `the name of a table, such as orders or sales.orders, with "quotation marks" around a part that has a dot`
	WantPublication = `the name of a publication, of at most 63 bytes`
	WantSlot        = `the name of a slot: at most 63 lower-case letters, digits and _, and not watchtide_ at its beginning, as temporary ones have`
	WantColumn      = `the name of a column, of at most 63 bytes`
)

// ValidURL reports whether a URL names a database. It must not contain a password, since URLs are
// logged.
func ValidURL(text string) bool {
	rest, ok := strings.CutPrefix(text, "postgres://")
	if !ok {
		rest, ok = strings.CutPrefix(text, "postgresql://")
	}
	authority, after, _ := strings.Cut(rest, "/")
	database, query, _ := strings.Cut(after, "?")
	hosts := authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		hosts = authority[at+1:]
		if strings.Contains(authority[:at], ":") {
			return false
		}
	}
	values, err := url.ParseQuery(query)
	return ok && err == nil && hosts != "" && database != "" && !values.Has("password") && !strings.ContainsAny(text, " \n")
}

// ValidPublication reports whether a publication can have the name.
func ValidPublication(name string) bool { return validName(name) }

// ValidSlot reports whether a permanent slot can have the name.
func ValidSlot(name string) bool {
	return validName(name) && !strings.HasPrefix(name, slotPrefix) && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// ValidColumn reports whether a column can have the name.
func ValidColumn(name string) bool { return validName(name) }

// validName reports whether a text can be an identifier of the server.
func validName(name string) bool {
	return name != "" && len(name) <= 63 && !strings.ContainsRune(name, 0)
}

// ValidTable reports whether a text names a table.
func ValidTable(name string) bool {
	_, _, ok := parseTable(name)
	return ok
}

// parseTable splits the name of a table into its schema, which is public if it has none, and the rest.
func parseTable(text string) (schema, name string, ok bool) {
	first, rest, ok := parsePart(text)
	if !ok || rest == "" {
		return "public", first, ok
	}
	second, rest, ok := parsePart(strings.TrimPrefix(rest, "."))
	return first, second, ok && rest == ""
}

// parsePart returns the first part of a name, and what follows it: nothing, or a dot and another one.
func parsePart(text string) (part, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		if dot := strings.IndexByte(text, '.'); dot >= 0 {
			return text[:dot], text[dot:], validName(text[:dot]) && !strings.Contains(text[:dot], `"`)
		}
		return text, "", validName(text) && !strings.Contains(text, `"`)
	}
	var b strings.Builder
	for text = text[1:]; ; {
		before, after, found := strings.Cut(text, `"`)
		b.WriteString(before)
		if !found {
			return "", "", false
		}
		if !strings.HasPrefix(after, `"`) {
			return b.String(), after, validName(b.String()) && (after == "" || after[0] == '.')
		}
		b.WriteByte('"')
		text = after[1:]
	}
}

func (c *Config) check() error {
	for _, known := range []struct {
		what, got, want string
		ok              bool
	}{
		{"url", hidden(c.URL), WantURL, ValidURL(c.URL)},
		{"publication", c.Publication, WantPublication, c.Publication == "" || ValidPublication(c.Publication)},
		{"slot", c.Slot, WantSlot, c.Slot == "" || ValidSlot(c.Slot)},
		{"max retained wal", strconv.FormatInt(c.MaxRetainedWAL, 10), "at least 16 MiB", c.MaxRetainedWAL == 0 || c.MaxRetainedWAL >= MinMaxRetainedWAL},
		{"failover", "true", "slot, since a temporary slot has none", !c.Failover || c.Slot != ""},
		{"stall after", c.StallAfter.String(), MinStallAfter.String() + " or more", c.StallAfter == 0 || c.StallAfter >= MinStallAfter},
	} {
		if !known.ok {
			return fmt.Errorf("postgres: %w", &stream.InvalidError{What: known.what, Got: known.got, Want: known.want})
		}
	}
	return nil
}

// Check reports a table that cannot be.
func (t *Table) Check() error {
	if !ValidTable(t.Name) {
		return fmt.Errorf("postgres: %w", &stream.InvalidError{What: "table", Got: t.Name, Want: WantTable})
	}
	for _, list := range [][]string{t.Key, t.Columns} {
		sorted := slices.Sorted(slices.Values(list))
		if len(slices.Compact(sorted)) < len(list) {
			return errors.New("postgres: want each column once")
		}
		for _, name := range list {
			if !validName(name) {
				return fmt.Errorf("postgres: %w", &stream.InvalidError{What: "column", Got: name, Want: WantColumn})
			}
		}
	}
	return nil
}

// hidden returns a URL without the part before an @, which may have a password.
func hidden(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return "…" + text[at:]
	}
	return text
}

func (c *Config) setDefaults() {
	if c.Publication == "" {
		c.Publication = DefaultPublication
	}
	if c.StallAfter == 0 {
		c.StallAfter = DefaultStallAfter
	}
	if c.MaxRetainedWAL == 0 {
		c.MaxRetainedWAL = DefaultMaxRetainedWAL
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.checkEvery == 0 {
		c.checkEvery = 30 * time.Second
	}
	if c.slotTimeout == 0 {
		c.slotTimeout = time.Minute
	}
}

// quoted returns an identifier as it is written in SQL.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quotedAll returns identifiers as they are written in SQL, with commas between them.
func quotedAll(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = quoted(name)
	}
	return strings.Join(all, ", ")
}

// sqlName returns the name of a table as it is written in SQL.
func sqlName(schema, name string) string { return quoted(schema) + "." + quoted(name) }

// settings are those of every session. Both the snapshot and the stream have the texts of values from
// the same functions of the server, which depend on them.
func (c *Config) settings() map[string]string {
	return map[string]string{
		"application_name": "watchtide", "client_encoding": "UTF8", "search_path": "pg_catalog",
		"datestyle": "ISO", "timezone": "UTC", "intervalstyle": "iso_8601", "extra_float_digits": "1", "bytea_output": "hex",
		"row_security":      "off",
		"statement_timeout": "0", "lock_timeout": "0", "idle_in_transaction_session_timeout": "0",
		"wal_sender_timeout": fmt.Sprintf("%dms", 2*c.StallAfter.Milliseconds()),
	}
}
