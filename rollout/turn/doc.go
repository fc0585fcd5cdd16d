// Package turn decides when a process may make a pod unavailable, if it shares only the API server with other such
// processes, for example several kubectl-refit set commands. Each process writes before it reads:
//
//   - It writes a claim on its pod that says that it waits (budget.Claim), and then lists the pods of the workload.
//   - If the budget allows its pod in addition to the pods of all processes that have waited longer, it writes that it
//     holds its turn, and lists again.
//   - Only if the budget then still allows its pod, in addition to the pods of all processes that hold their turns, it
//     proceeds. Otherwise it waits again.
//
// If several processes hold their turn at the same moment, the last one to write it sees all others. So no more pods
// become unavailable than allowed. This requires lists that contain every earlier write, like lists of the API server
// without a resourceVersion. Processes that have waited longer come first, so that they do not wait for each other for
// ever.
//
// The package only decides: it takes values and the time as arguments and returns values. Clients, goroutines and
// sleeping must stay out.
package turn
