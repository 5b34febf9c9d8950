// Package principal says who asks: the result of checking a credential, and what rules
// decide on.
package principal
