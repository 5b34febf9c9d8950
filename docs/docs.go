// Package docs embeds the documentation that users read, as Markdown.
package docs

import "embed"

// Pages are the documents, by their path below docs/.
//
//go:embed *.md sources/*.md
var Pages embed.FS
