package config

import "time"

// The readers below are for the tables of source types and watches.

func (d *decoder) str(into *string) field {
	return d.strThat(texts[""].want, texts[""].valid, into)
}

func (d *decoder) strThat(want string, ok func(string) bool, into *string) field {
	return func(v value) { d.readText(v, text{want, ok}, into) }
}

func (d *decoder) boolean(into *bool) field {
	return func(v value) { d.readBool(v, into) }
}

func (d *decoder) duration(into *time.Duration) field {
	return func(v value) { d.readDuration(v, tag{}, into) }
}

func (d *decoder) durationOf(t tag, into *time.Duration) field {
	return func(v value) { d.readDuration(v, t, into) }
}

func (d *decoder) durationAtLeast(least time.Duration, into *time.Duration) field {
	return d.durationOf(tag{min: least.String(), least: int64(least)}, into)
}

func (d *decoder) size(into *int64) field {
	return func(v value) { d.readSize(v, tag{}, into) }
}

func (d *decoder) list(want string, ok func(string) bool, into *[]string) field {
	return func(v value) {
		d.readItems(v, func(v value) {
			var s string
			d.readText(v, text{want, ok}, &s)
			*into = append(*into, s)
		})
	}
}

func (d *decoder) ceiling(into *int64) field {
	return func(v value) { d.readSize(v, tag{min: "1MiB", least: 1 << 20}, into) }
}

func (d *decoder) history(h *History) field {
	return func(v value) { d.section(v, h) }
}
