// Package consulsource follows resources of Consul's resource service (Consul 1.18
// and later), of any type that the server has.
package consulsource
