// Package jwt verifies the tokens of OpenID providers (RFC 7519). It fetches the keys of each
// issuer, within limits, and caches verified tokens.
package jwt
