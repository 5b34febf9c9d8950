// Package refusal says why a credential is not accepted, in terms of HTTP.
package refusal
