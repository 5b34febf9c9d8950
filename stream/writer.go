package stream

import (
	"context"
	"fmt"
)

// Writer is implemented by sources that support writes. Its methods may be called
// from any goroutine. They return once the change is made upstream; subscribers see
// it a little later.
type Writer interface {
	// Put creates or replaces a resource. It returns the resource as stored, and
	// whether there was none before.
	Put(ctx context.Context, r PutRequest) (stored Resource, created bool, err error)
	// Delete removes a resource and returns whether there was one.
	Delete(ctx context.Context, r DeleteRequest) (deleted bool, err error)
}

// ValueLimiter is also implemented by a Writer that takes no value of more than
// MaxValueBytes bytes. A larger one is then refused before it is read.
type ValueLimiter interface {
	MaxValueBytes() int64
}

// ConditionalWriter is implemented by a Writer that can call the Condition of a request while
// nothing else can change the resource. Any other Writer must not be given a request with one.
type ConditionalWriter interface {
	// TakesConditions does nothing.
	TakesConditions()
}

// PutRequest is one write.
type PutRequest struct {
	Key string
	// Value is JSON text. It is copied if it is kept.
	Value []byte
	// IfRevision, if set, is the revision that the resource must have now
	// (compare-and-set); 0: there must be none.
	IfRevision *uint64
	// ValidateOnly: respond as if written, without writing.
	ValidateOnly bool
	// Condition, if not nil, decides on the write before anything else, even before IfRevision. old
	// is the resource that exists, nil if there is none, and value is the new value. The write
	// fails with its error. See ConditionalWriter.
	Condition func(old *Resource, value []byte) error
	// Client names the client that waits for the write. A Writer that makes a limited number of
	// writes at a time gives each client a share of them. "" is a client as well.
	Client string
	// By is who writes, for an upstream that decides by that; nil: nobody who is known.
	By *Author
}

// Author is who makes a write, as the gateway knows them by their credential.
type Author struct {
	Name   string
	Groups []string
	// Authenticated reports that the upstream itself has said who this is, with the following. Otherwise
	// somebody else has, such as an OpenID provider.
	Authenticated bool
	UID           string
	Extra         map[string][]string
}

// DeleteRequest is one removal; the fields are those of PutRequest.
type DeleteRequest struct {
	Key          string
	IfRevision   *uint64
	ValidateOnly bool
	Condition    func(old *Resource) error
	Client       string
	By           *Author
}

// ConflictError reports that a compare-and-set found another revision.
type ConflictError struct {
	Key string
	// Want is the revision asked for, Got the one there is; 0: none.
	Want, Got uint64
}

// Error names the key and both revisions.
func (e *ConflictError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("key %q does not exist, revision %d was expected", e.Key, e.Want)
	}
	if e.Want == 0 {
		return fmt.Sprintf("key %q exists at revision %d, none was expected", e.Key, e.Got)
	}
	return fmt.Sprintf("key %q is at revision %d, %d was expected", e.Key, e.Got, e.Want)
}

// TooLargeError reports that a limit would be exceeded.
type TooLargeError struct {
	What        string // for instance "value"
	Size, Limit int64  // bytes; no size: it is not for the writer to know, since it is that of many resources
}

// Error names what is too large, its size and the limit.
func (e *TooLargeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("the %s is full, the limit is %d bytes", e.What, e.Limit)
	}
	return fmt.Sprintf("%s of %d bytes is too large, the limit is %d", e.What, e.Size, e.Limit)
}

// UnavailableError reports that nothing can be written now. What was asked for may or may not become
// visible later.
type UnavailableError struct {
	// What says what does not take writes, for everybody.
	What string
	// Cause is for operators; it may name files.
	Cause error
}

// Error does not show the cause.
func (e *UnavailableError) Error() string { return e.What }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// RejectedError reports that the upstream does not accept a value, which is for the client to change.
type RejectedError struct {
	Key string
	// Reason is in the words of the upstream, for clients.
	Reason string
}

// Error has the reason.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("the upstream rejects the value of key %.100q: %.1000s", e.Key, e.Reason)
}

// DeniedError reports that the upstream does not let the author of a write make it. Nothing was written.
type DeniedError struct {
	Key string
	// Reason is in the words of the upstream, for clients.
	Reason string
}

// Error has the reason.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("the upstream does not let you do this with the key %.100q: %.1000s", e.Key, e.Reason)
}

// OutcomeUnknownError reports that the answer to a write was lost: the write was made, or is made
// later, or not at all. It must not be repeated without a look at what is there.
type OutcomeUnknownError struct {
	Key string
	// Cause is for operators.
	Cause error
}

// Error does not show the cause.
func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("the upstream did not answer the write of key %.100q, which may or may not have been made: read the resource before you write again", e.Key)
}

// Unwrap returns the cause.
func (e *OutcomeUnknownError) Unwrap() error { return e.Cause }
