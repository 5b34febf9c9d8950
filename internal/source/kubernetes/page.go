package kubernetes

import (
	"encoding/json"
	"fmt"
	"strings"
)

// pageDecoder decodes the answer to a list, one object at a time.
type pageDecoder struct {
	d    *json.Decoder
	done func() // called after each member, and each object
	each func(object json.RawMessage, of typeMeta) error

	list typeMeta
	meta listMeta
}

// decode decodes one page.
func (p *pageDecoder) decode() (listMeta, error) {
	if err := p.open('{'); err != nil {
		return p.meta, err
	}
	for p.d.More() {
		name, err := p.d.Token()
		if err != nil {
			return p.meta, err
		}
		if err := p.member(name); err != nil {
			return p.meta, err
		}
		p.done()
	}
	_, err := p.d.Token()
	return p.meta, err
}

// open reads the bracket that a value must begin with.
func (p *pageDecoder) open(bracket json.Delim) error {
	token, err := p.d.Token()
	if err == nil && token != bracket {
		return invalid("a list with %.40s where %q is wanted", fmt.Sprint(token), bracket)
	}
	return err
}

func (p *pageDecoder) member(name json.Token) error {
	switch name {
	case "kind":
		return p.d.Decode(&p.list.Kind)
	case "apiVersion":
		return p.d.Decode(&p.list.APIVersion)
	case "metadata":
		return p.d.Decode(&p.meta)
	case "items":
		return p.items()
	}
	return p.d.Decode(new(json.RawMessage))
}

// items passes the objects on. They come before the kind of the list where each has
// its own kind.
func (p *pageDecoder) items() error {
	if token, err := p.d.Token(); err != nil || token == nil {
		return err // null: there are none
	} else if token != json.Delim('[') {
		return invalid("items that are %.40s: want a list", fmt.Sprint(token))
	}
	of := typeMeta{Kind: strings.TrimSuffix(p.list.Kind, "List"), APIVersion: p.list.APIVersion}
	for p.d.More() {
		var object json.RawMessage
		if err := p.d.Decode(&object); err != nil {
			return err
		}
		if err := p.each(object, of); err != nil {
			return err
		}
		p.done()
	}
	_, err := p.d.Token()
	return err
}
