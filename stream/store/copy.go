package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchtide/watchtide/internal/disk"
	"github.com/watchtide/watchtide/stream"
)

// Target is an upstream that takes the resources of a watch. Its methods may be called from any goroutine.
type Target interface {
	// Check reports a resource that cannot be there. It asks nobody.
	Check(key string, value []byte) error
	// Create creates a resource. false: it is there already, with this value. It is an error if
	// another value is there.
	Create(ctx context.Context, key string, value []byte) (created bool, err error)
}

// Copied counts resources.
type Copied struct {
	Created int // by this copy
	Present int // before, with the same value
	All     int // to be copied
}

const (
	copyWorkers   = 32
	progressEvery = 2 * time.Second
)

// Copy creates the resources of some watches, or of all, of a file that no process has open, at the
// target of each watch. Everything is checked before the first write, and nothing that is there is
// changed, so that a copy that was broken off can be made again. progress is called now and then.
func Copy(ctx context.Context, path string, watches []string, target func(watch string) (Target, error), progress func(Copied)) (Copied, error) {
	c := &copier{progress: progress}
	err := inFile(path, func(file *disk.File, tx *disk.Tx, newest uint64) error {
		err := eachWatch(tx, file.Format(), func(f *fileWatch) error {
			if len(watches) > 0 && !slices.Contains(watches, f.name) {
				return nil
			}
			to, err := target(f.name)
			if err != nil {
				return err
			}
			resources, err := f.resources(newest)
			if err != nil {
				return err
			}
			return c.add(f.name, to, resources)
		})
		if err != nil {
			return err
		}
		for _, name := range watches {
			if !slices.ContainsFunc(c.watches, func(w copiedWatch) bool { return w.name == name }) {
				return fmt.Errorf("%s has no watch %s", path, name)
			}
		}
		return c.run(ctx)
	})
	return c.copied(), err
}

// copier copies resources. Its fields without an owner are static when run is called.
type copier struct {
	progress func(Copied)
	watches  []copiedWatch
	all      int

	created, present atomic.Int64
}

type copiedWatch struct {
	name      string
	to        Target
	resources []found
}

// copyJob is one resource that a worker creates.
type copyJob struct {
	watch    *copiedWatch
	resource *found
}

func (c *copier) copied() Copied {
	return Copied{Created: int(c.created.Load()), Present: int(c.present.Load()), All: c.all}
}

// add checks the resources of a watch.
func (c *copier) add(name string, to Target, resources []found) error {
	for i := range resources {
		r := resources[i].resource()
		if err := to.Check(r.Key, r.Value); err != nil {
			if invalid := new(stream.InvalidError); errors.As(err, &invalid) && invalid.Got == r.Key {
				return fmt.Errorf("watch %s: %w", name, err) // it names the key itself
			}
			return fmt.Errorf("watch %s: key %.80q: %w", name, r.Key, err)
		}
	}
	c.watches = append(c.watches, copiedWatch{name, to, resources})
	c.all += len(resources)
	return nil
}

// run copies everything, up to the first error.
func (c *copier) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	next := make(chan copyJob)
	var workers sync.WaitGroup
	for range copyWorkers {
		workers.Go(func() {
			for one := range next {
				if err := c.create(ctx, one); err != nil {
					fail(err)
				}
			}
		})
	}
	c.hand(ctx, next)
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// hand hands each resource to a worker.
func (c *copier) hand(ctx context.Context, next chan<- copyJob) {
	told := time.Now()
	for i := range c.watches {
		w := &c.watches[i]
		for k := range w.resources {
			select {
			case next <- copyJob{w, &w.resources[k]}:
			case <-ctx.Done():
				return
			}
			if time.Since(told) >= progressEvery {
				told = time.Now()
				c.progress(c.copied())
			}
		}
	}
}

func (c *copier) create(ctx context.Context, one copyJob) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	key := string(one.resource.key)
	created, err := one.watch.to.Create(ctx, key, one.resource.value)
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("watch %s: key %.80q: %w", one.watch.name, key, err)
	case created:
		c.created.Add(1)
	default:
		c.present.Add(1)
	}
	return nil
}
