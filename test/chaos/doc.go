// Package chaos restarts containers on a real cluster of test/cluster while it breaks that cluster, and hands the
// records of it to the room history for judgement. It must not look into Refit: it knows its wire types, its
// manifests, and that the daemon can be told where the runtime's socket is.
package chaos
