// Package turn decides when a process may take a pod out of service that shares nothing with other such processes but the API
// server, as several kubectl-refit set do. Each announces before it looks:
//
//   - It writes a claim on its pod, as one who waits (budget.Claim), and then lists the pods of the workload.
//   - When the budget allows its pod beside those of all who have waited for longer, it writes that it holds its turn, and lists again.
//   - Only if the budget allows its pod then too, beside all who hold theirs, it goes on. Otherwise it waits again.
//
// Of several processes that hold their turn at the same moment, the one that has written so last sees all others, so no more than
// may be unavailable go on. That needs lists that show every write before, as those of the API server without a resourceVersion do.
// Those that waited for longer go first, so that they do not make each other wait for ever.
//
// It holds decisions only: values in, values out, the time as an argument. Clients, goroutines and sleeping must stay out.
package turn
