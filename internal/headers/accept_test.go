package headers

import (
	"strings"
	"testing"
)

func TestGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"":                                 false,
		"gzip":                             true,
		"x-gzip":                           true,
		"GZip":                             true,
		"gzip, deflate, br, zstd":          true, // browsers
		"deflate, br":                      false,
		"identity":                         false,
		"*":                                true,
		"*;q=0":                            false,
		"gzip;q=0":                         false,
		"gzip;q=0, *":                      false,
		"gzip;q=0.000":                     false,
		"gzip;q=0.1":                       true,
		"gzip;q=0.5, identity":             false,
		"gzip, identity;q=0.5":             true,
		"gzip, identity":                   true,
		"identity;q=0":                     false, // nothing acceptable is available
		"gzip;q=0.5, *;q=0":                true,
		"*;q=0.5, identity":                false,
		"gzip ; q=1":                       true,
		"gzip;q=nonsense":                  false,
		"gzip;q=2":                         false,
		" , gzip ,":                        true,
		"gzipped":                          false,
		"identity; q=0.2, gzip; q=0.3,*":   true,
		"br;q=1.0, gzip;q=0.8, *;q=0.1":    true,
		"compress, gzip;level=9;q=0.0, br": false,
	} {
		if got := AcceptsGzip([]string{header}); got != want {
			t.Errorf("%q: %t, want %t", header, got, want)
		}
	}
}

// FuzzGzip checks that splitting a list into headers, its case and its spaces
// do not matter, and that a client that neither names gzip nor accepts everything
// does not get it.
func FuzzGzip(f *testing.F) {
	for _, header := range []string{"gzip", "gzip;q=0.5, identity;q=0.4", "*;q=0", "br, , gzip ; q=1"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		got := AcceptsGzip([]string{header})
		if cut := AcceptsGzip(strings.Split(header, ",")); cut != got {
			t.Errorf("%q: %t, in several headers %t", header, got, cut)
		}
		if spaced := AcceptsGzip([]string{" " + strings.ReplaceAll(header, ",", " , ")}); spaced != got {
			t.Errorf("%q: %t, with spaces %t", header, got, spaced)
		}
		if got && !strings.Contains(strings.ToLower(header), "gzip") && !strings.Contains(header, "*") {
			t.Errorf("%q does not ask for gzip", header)
		}
		switch both := PreferredCoding([]string{header}, "zstd", "gzip"); {
		case both == "gzip" && !got, got && both == "":
			t.Errorf("%q: gzip alone %t, beside zstd %q", header, got, both)
		case both == "zstd" && !strings.Contains(strings.ToLower(header), "zstd") && !strings.Contains(header, "*"):
			t.Errorf("%q does not ask for zstd", header)
		}
		if AcceptsGzip([]string{header, "identity;q=1"}) && !AcceptsGzip([]string{header}) {
			t.Errorf("%q asks for gzip only if identity is preferred", header)
		}
	})
}

func TestPreferredCoding(t *testing.T) {
	for header, want := range map[string]string{
		"":                                  "",
		"gzip, deflate, br, zstd":           "zstd", // browsers
		"zstd":                              "zstd",
		"ZSTD":                              "zstd",
		"gzip":                              "gzip",
		"x-gzip, zstd;q=0.9":                "gzip",
		"zstd;q=0.5, gzip;q=0.5":            "zstd",
		"zstd;q=0.5, gzip;q=0.6":            "gzip",
		"zstd;q=0, gzip":                    "gzip",
		"zstd;q=0, *":                       "gzip",
		"*":                                 "zstd",
		"*;q=0.5, gzip":                     "gzip",
		"gzip;q=0, *":                       "zstd",
		"identity, zstd":                    "zstd",
		"identity, zstd;q=0.9, gzip;q=0.9":  "",
		"identity;q=0.5, zstd;q=0.4, gzip":  "gzip",
		"zstd;q=nonsense, gzip;q=0.1":       "gzip",
		"br, dcb, dcz":                      "",
		"zstandard":                         "",
		"identity;q=0.5, zstd;q=0.5, br":    "zstd",
		"identity;q=0.5, *;q=0.5, zstd;q=0": "gzip",
	} {
		if got := PreferredCoding([]string{header}, "zstd", "gzip"); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
