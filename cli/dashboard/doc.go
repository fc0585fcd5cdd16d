// Package dashboard serves pages about what Refit does in a cluster, on the loopback interface, with the rights of the user who has started
// it, and writes a rollout as one file. How rollouts are paused, ended and undone is in the packages of the commands that do the same.
package dashboard
