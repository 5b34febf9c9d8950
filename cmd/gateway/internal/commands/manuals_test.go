package commands

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

func manualTree() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Do things", Run: run}
	root.PersistentFlags().String("level", "info", "the `LEVEL`")
	child := &cobra.Command{
		Use: "go-on FILE", Short: "Go on", Run: run,
		Long:    "Go on.\nIt's \\ two…\n\n.lines that are kept:\n\n  a  1\n    b  2\n\nThe end",
		Example: "  tool go-on 'x'\n  .y",
	}
	child.Flags().StringP("out", "o", "", "the `FORM`")
	child.Flags().Bool("hidden", false, "")
	_ = child.Flags().MarkHidden("hidden")
	root.AddCommand(child, &cobra.Command{Use: "secret", Run: run, Hidden: true})
	return root
}

const wantPage = `.TH "TOOL\-GO\-ON" 1 "" "watchtide 1.2.3"
.SH NAME
tool\-go\-on \- go on
.SH SYNOPSIS
.B tool go\-on FILE [flags]
.SH "DESCRIPTION"
.PP
Go on.
It\(aqs \e two\[u2026]
.PP
\&.lines that are kept:
.PP
.PP
.nf
  a  1
    b  2
.fi
.PP
The end
.SH "OPTIONS"
.TP
\fB\-h, \-\-help\fR
help for go\-on
.TP
\fB\-o, \-\-out\fR FORM
the FORM
.SH "OPTIONS OF ALL COMMANDS"
.TP
\fB\-\-level\fR LEVEL
the LEVEL (default info)
.SH "EXAMPLES"
.PP
.nf
  tool go\-on \(aqx\(aq
  .y
.fi
.SH "SEE ALSO"
.BR tool (1)
`

func TestWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "man")
	for range 2 { // it replaces what is there
		if err := writeManual(manualTree(), "1.2.3", folder); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 2 {
		t.Errorf("got %v, %v, want the pages of tool and tool go-on", files, err)
	}
	got, err := os.ReadFile(filepath.Join(folder, "tool-go-on.1"))
	if err != nil || string(got) != wantPage {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, wantPage)
	}
}
