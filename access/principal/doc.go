// Package principal has the result of checking a credential, which rules decide on.
package principal
