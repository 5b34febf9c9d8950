package histories

import (
	"math/rand/v2"
	"slices"
	"time"
)

// choices are the decisions that make a history: numbers, in the order in which they
// were requested. The same numbers make the same history, except for the influence
// of the runtime's scheduler.
//
// Owned by one history.
type choices struct {
	random *rand.Rand // nil: choices beyond made are 0
	made   []int
	next   int
}

// seeded returns the choices of a seed.
func seeded(seed uint64) *choices { return &choices{random: rand.New(rand.NewPCG(seed, 0))} }

// chosen returns choices that were made before.
func chosen(made []int) *choices { return &choices{made: made} }

// pick returns a number from 0 to n-1. 0 is the simplest choice.
func (c *choices) pick(n int) int {
	if n <= 1 {
		return 0
	}
	if c.random != nil {
		c.made = append(c.made, c.random.IntN(n))
	}
	c.next++
	if c.next > len(c.made) {
		return 0
	}
	return c.made[c.next-1] % n
}

// rarely is true once in n times.
func (c *choices) rarely(n int) bool { return c.pick(n) == n-1 }

// oneOf returns one of the values; the first is the simplest.
func oneOf[T any](c *choices, values ...T) T { return values[c.pick(len(values))] }

// shrink looks for fewer and smaller choices that still fail, for some time.
func shrink(made []int, fails func([]int) bool, patience time.Duration) []int {
	until := time.Now().Add(patience)
	try := func(candidate []int) bool {
		if time.Now().After(until) || !fails(candidate) {
			return false
		}
		made = candidate
		return true
	}
	for before := []int(nil); !slices.Equal(before, made) && time.Now().Before(until); {
		before = made
		for size := len(made) / 2; size > 0; size /= 2 {
			for at := 0; at+size <= len(made); {
				if !try(slices.Concat(made[:at], made[at+size:])) {
					at += size
				}
			}
		}
		for at := range made {
			if made[at] > 0 && at < len(made) {
				smaller := slices.Clone(made)
				smaller[at] = 0
				try(smaller)
			}
		}
	}
	return made
}
