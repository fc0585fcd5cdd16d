// Package configchange decides when the containers of a workload are restarted because ConfigMaps or Secrets that they
// use have changed: which objects they use (References), how a change of the content is detected (the digests), and
// what to do next for a RestartTrigger (Next).
//
// The package only decides: it takes values and the time as arguments and returns values. Clients, goroutines and
// sleeping must stay out.
package configchange
