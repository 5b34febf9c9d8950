// Package replicas asks the other replicas that the configuration names who they are and how they
// are. It asks nobody else, whatever they answer.
package replicas
