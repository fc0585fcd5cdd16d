// Package record is how far the update of a pod has come, as kept in annotations of the pod: how a record is read, begun,
// continued after each write, and encoded. The annotations are OpenKruise's, with a part of Refit's own in them; what
// OpenKruise has begun is read as well. What is to be done next is decided in package inplace.
package record
