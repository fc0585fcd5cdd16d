// Package openkruise decides what behaves differently in a cluster when the programs of OpenKruise are replaced by Refit's,
// and the other way round: kinds, fields, feature gates, and work in progress.
//
// It contains only decisions: objects in, differences out, with the time as an argument. Clients and printing must stay
// out. What Refit does with an object is decided in the packages of its features, which are called here.
package openkruise
