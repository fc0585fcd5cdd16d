// Package endpoint has the configuration of one probed endpoint, which the plugins http_probe and hot_update share, and
// its results.
//
// It contains: the conversion of the configuration to a probe of package probe, and of its result to an entry of
// package result. Running probes and writing results must stay out.
package endpoint
