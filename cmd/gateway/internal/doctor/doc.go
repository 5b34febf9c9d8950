// Package doctor examines the way between this machine and a gateway, as a browser meets
// it: proxies, load balancers and certificates. It finds what breaks streams there, says how to mend
// it, and has the command that prints the findings. On the machine of a gateway, it examines the folder
// of its journal.
//
// The gateway and everything on the way to it may be hostile: no answer is waited for without
// a deadline, read without a limit, or printed with a token in it. A token is never sent where
// the certificate is wrong, nor to where a redirect leads.
package doctor
