//go:build tools

// Package clients names the client of the IETF's responsiveness test. It is a module of its own: not every
// proxy for Go modules has it, and the other clients shall not wait for it.
package clients

import _ "github.com/network-quality/goresponsiveness"
