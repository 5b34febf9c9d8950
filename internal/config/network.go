package config

import (
	"net/netip"

	"github.com/watchtide/watchtide/internal/config/internal/decode"
)

func (d *decoder) readNetwork(v decode.Value, into *netip.Prefix) {
	var s string
	d.ReadText(v, texts["network"], &s)
	*into, _ = decode.ParseNetwork(s)
}
