package gateway

import (
	"testing"
	"time"
)

func TestAdmissionLimit(t *testing.T) {
	a := newAdmission(2, 0)
	for range 2 {
		if !a.enter() {
			t.Fatal("refused below the limit")
		}
	}
	if a.enter() {
		t.Fatal("let one in beyond the limit")
	}
	a.leave()
	if !a.enter() || a.count() != 2 {
		t.Fatal("a place that was left was not given again")
	}
}

func TestAdmissionDrain(t *testing.T) {
	a := newAdmission(0, time.Second)
	a.enter()
	a.enter()
	a.drain()
	a.drain() // a second signal changes nothing
	if !a.isDraining() || a.enter() {
		t.Fatal("let one in while draining")
	}
	a.leave()
	if closed(a.idle) {
		t.Fatal("idle with one stream open")
	}
	a.leave()
	if !closed(a.idle) {
		t.Fatal("not idle with no stream open")
	}
}

func TestAdmissionDrainOfNobody(t *testing.T) {
	a := newAdmission(0, time.Second)
	a.drain()
	if !closed(a.idle) {
		t.Fatal("not idle with no stream open")
	}
}

func TestGoodbyesAreSpread(t *testing.T) {
	a := newAdmission(0, 10*time.Second)
	var early, late int
	for range 1000 {
		switch d := a.goodbyeDelay(); {
		case d < 0 || d >= 10*time.Second:
			t.Fatalf("%s is outside of the spread", d)
		case d < 5*time.Second:
			early++
		default:
			late++
		}
	}
	if early < 400 || late < 400 {
		t.Errorf("%d in the first half, %d in the second: want them spread", early, late)
	}
	if d := newAdmission(0, -1).goodbyeDelay(); d != 0 {
		t.Errorf("%s with no spread", d)
	}
}
