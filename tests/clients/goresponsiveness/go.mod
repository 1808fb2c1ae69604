module weir.invalid/goresponsiveness

go 1.21

require github.com/network-quality/goresponsiveness v0.0.0-20240129151524-343954285090

require (
	github.com/influxdata/tdigest v0.0.1 // indirect
	golang.org/x/exp v0.0.0-20230213192124-5e25df0256eb // indirect
	golang.org/x/net v0.7.0 // indirect
	golang.org/x/sys v0.5.0 // indirect
	golang.org/x/text v0.7.0 // indirect
)
