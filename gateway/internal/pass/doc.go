// Package pass says until when the streams of somebody may go on: until their credential
// ends or is revoked, or until they may see something else than what they follow.
package pass
