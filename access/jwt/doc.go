// Package jwt verifies the tokens of OpenID providers (RFC 7519): it knows the keys of
// each issuer, asks for new ones within limits, and remembers the tokens that it has
// verified.
package jwt
