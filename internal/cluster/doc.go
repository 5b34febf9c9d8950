// Package cluster asks a Kubernetes cluster for the users of tokens, and what users may read. Requests are
// bounded: what a client sends costs the API server a limited number of questions, and answers are
// remembered for a limited time.
//
// [Tokens] knows the user of a bearer token, by a TokenReview. [Rights] knows which namespaces of a
// resource a user may list and watch, by SubjectAccessReviews, and looks again while requests ask.
package cluster
