// Package problem is what the gateway answers when it cannot do what was asked:
// problem+json over HTTP and a status over gRPC. It also has the checks that every
// request goes through: of its method, its query and the watches that it names.
package problem
