package adapter

import (
	"errors"
	"io/fs"
	"testing"
)

func TestError(t *testing.T) {
	err := error(NewFailure(&fs.PathError{Op: "open", Path: "/secret", Err: fs.ErrNotExist}, "no file; want one"))
	if got := err.Error(); got != "no file; want one" {
		t.Errorf("the text is %q", got)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause is lost")
	}
	var path *fs.PathError
	if !errors.As(err, &path) || path.Path != "/secret" {
		t.Errorf("the cause is %v", path)
	}
}
