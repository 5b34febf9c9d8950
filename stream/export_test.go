package stream

// TakeVersions takes the versions away that readers are in the middle of, as
// happens when the memory is needed.
func (w *Watch) TakeVersions() { w.log.pins.takeAll() }
