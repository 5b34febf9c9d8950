// Package transaction checks and orders the changes of one transaction before they enter a
// log.
package transaction
