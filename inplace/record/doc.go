// Package record stores the progress of an update in annotations of the pod. It reads, starts, continues and encodes
// records. The annotations are OpenKruise's, with an extension by Refit. The package also reads records of updates that
// OpenKruise has begun. Package inplace decides what to do next.
package record
