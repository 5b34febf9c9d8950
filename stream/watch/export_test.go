package watch

// TakeVersions takes away the versions that readers are walking through, as happens
// when the memory is needed.
func (w *Watch) TakeVersions() { w.account.TakeVersions() }
