//go:build !linux

package epoll

import "errors"

// NewFile fails: there are no memory files here.
func NewFile([][]byte, func()) (*File, error) { return nil, errors.ErrUnsupported }

// ReadAt fails, as there is no file.
func (f *File) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

func (f *File) close() {}
