// Package result is the one door through which outcomes reach the API.
//
// In the room are: what an outcome is (Entry), the places it can go to as values (Target), the limits of what
// fits there, the smallest patch that brings an object to what is wanted (Diff), and the Writer, which sends
// nothing when nothing has changed and what changed together as one patch. Probing, the work that had the
// outcome and its repetition, API clients, and who is asking may not enter; the API is behind the port Patcher.
package result
