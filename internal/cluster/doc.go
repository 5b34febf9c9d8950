// Package cluster asks a Kubernetes cluster who its users are, and what they may read. Requests are
// bounded: what a client sends costs the API server a limited number of questions, and answers are
// remembered for a limited time.
//
// [Tokens] knows who a bearer token belongs to, by a TokenReview. [Rights] knows which namespaces of a
// resource a user may list and watch, by SubjectAccessReviews, and looks again as long as somebody asks.
package cluster
