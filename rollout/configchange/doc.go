// Package configchange decides when the containers of a workload are restarted because ConfigMaps or Secrets that they use
// have changed: which objects these are (References), what proves that a content has changed (the digests), and what is done
// next for a RestartTrigger (Next).
//
// It holds decisions only: values in, values out, the time as an argument. Clients, goroutines and sleeping must stay out.
package configchange
