// Package provider tests package access/credential with a real OpenID provider, the
// example server of zitadel/oidc, as a process of its own. All of it is tests, in a
// module of its own, so that the provider stays out of the product's go.mod.
package provider
