package main

// mergePatch applies a JSON merge patch (RFC 7396): objects are merged member
// by member, null removes a member, and everything else, lists included,
// replaces what was there. Neither argument is changed.
func mergePatch(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := make(map[string]any)
	if t, ok := target.(map[string]any); ok {
		for name, v := range t {
			out[name] = v
		}
	}
	for name, v := range p {
		if v == nil {
			delete(out, name)
			continue
		}
		out[name] = mergePatch(out[name], v)
	}
	return out
}
