package config

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Audit is the section "audit" of "auth".
type Audit struct {
	// File is the name of the file to which lines are appended, or Stderr.
	File string `yaml:"file,required,is=audit file"`
}

// Stderr stands for standard error in place of the name of a file.
const Stderr = "stderr"

// Open opens the audit log; nil: there is no section. Each call opens the file again, so that a
// file that was renamed is replaced. Closing the result does not close stderr.
func (a Audit) Open(stderr io.Writer) (io.Writer, error) {
	switch a.File {
	case "":
		return nil, nil
	case Stderr:
		return notClosed{stderr}, nil
	}
	// Without O_NONBLOCK, a named pipe that nobody reads would block the caller.
	f, err := os.OpenFile(a.File, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("auth.audit.file: the audit log cannot be opened for writing: %w", err)
	}
	return f, nil
}

// notClosed is a writer without a Close method: others use it too.
type notClosed struct{ io.Writer }
