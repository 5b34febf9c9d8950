// Package listing reads a version of a log in pages, by revision and key, and keeps what
// the next page of a listing needs.
package listing
