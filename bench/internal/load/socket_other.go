//go:build !linux

package load

import (
	"errors"
	"net/netip"
	"time"
)

// errLinux is the error of New here.
var errLinux = errors.New("the load generator needs Linux: it is made of epoll")

type socket int32

const none socket = -1

func connect(netip.Addr, netip.AddrPort, int) (socket, error) { return none, errLinux }

func (socket) read([]byte) (int, error) { return 0, errLinux }
func (socket) write([]byte) error       { return errLinux }
func (socket) err() error               { return errLinux }
func (socket) linger0()                 {}
func (socket) close()                   {}

type poll struct{}

type event struct{}

func (event) conn() int         { return 0 }
func (event) generation() int32 { return 0 }
func (event) readable() bool    { return false }
func (event) broken() bool      { return false }

func newPoll() (*poll, error) { return nil, errLinux }

func (*poll) add(socket, int, int32) error          { return errLinux }
func (*poll) modify(socket, int, int32, bool) error { return errLinux }
func (*poll) wait(time.Duration) ([]event, error)   { return nil, errLinux }
func (*poll) close() error                          { return nil }
