//go:build tools

// Package clients names the programs of other projects that the tests run against `weir serve`, and the
// server against which they run `weir test`.
package clients

import (
	_ "github.com/m-lab/msak/cmd/msak-client"
	_ "github.com/m-lab/ndt-server"
	_ "github.com/m-lab/ndt7-client-go/cmd/ndt7-client"
)
