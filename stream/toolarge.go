package stream

import "errors"

// memoryPatience is how many times as long as after another failure a watch
// waits that does not fit into its memory: each attempt costs the upstream the
// better part of a snapshot.
const memoryPatience = 10

// noteTooLarge remembers that a connection, which has ended with err, was ended
// since the watch does not fit into its memory, and returns that as the error.
//
// What was committed stays as it is, and is stale. The next connection begins
// from nothing: to go on from the last commit would be to take the very changes
// again that do not fit, even if the upstream has shrunk since.
func (in *ingest) noteTooLarge(err error) error {
	var why *MemoryError
	if !errors.As(in.reader.sink.staging.failed, &why) && !errors.As(err, &why) {
		return err
	}
	in.tooLarge.Store(why)
	return why
}

// full is why the watch takes no more subscribers.
func (in *ingest) full() error {
	if why := in.tooLarge.Load(); why != nil {
		return why
	}
	return nil
}
