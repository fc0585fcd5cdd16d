// Package history decides whether a run kept Refit's promises. It reads records that know nothing of each other: the
// API server's audit log, the CRI proxy's record of the daemon's calls, the containers' own log of starts and
// signals, and the journals of the faults that the run itself caused and of what it had applications say.
//
// It also reports a daemon that crashed, and a policy of Refit that refused a write of Refit's own programs.
//
// It is pure: bytes in, a verdict out. It imports the wire types and nothing else of Refit, as what is judged must
// not help to judge.
//
// Invariants, by the names the report uses:
//
//	I1  A container is stopped at most once for each request, only after its ID was stored in the request, and only
//	    while that ID is the one of admission (or forceRecreate). A repeated StopContainer for the same ID is the same
//	    stop as long as the application saw one TERM.
//	I2  Nothing outside the request's namespace and pod UID is stopped, removed, entered or woken.
//	I3  The status of a request that has ended never changes.
//	I4  Succeeded means: another container runs, ready if the pod says so, up for minStartedSeconds.
//	I5  Every request ends: by its deadline + 5 s, or within patience of its turn. Time during which a fault took away
//	    what that needs does not count.
//	I6  Requests of one pod are begun in the order of their creation, each after the end of the one before.
//	I8  A probed condition is what the application says of itself, at the latest when it has had a time without faults
//	    to follow, and a pod is written to no more often than its application turns.
//	I9  Once an ImagePullJob is deleted no pull of its image begins, not counting faults, unless another job wants it.
//	I10 Who reads files that a sidecar updates sees a whole version, and none that was refused, except in the time until it is
//	    rolled back. An update is accepted when the program has it, and refused only with a reason. No other process is
//	    signalled.
//	I11 The daemon's token changes nothing that belongs to another node.
//	I12 Without manager and daemon pods still start, run, restart and are deleted.
//	I13 A RestartRollout restarts each pod at most once, and an available one only while fewer pods than it allows are
//	    unavailable. It ends, and Succeeded means that its pods were restarted.
//	I14 An ImagePullJob counts a node as done only after the runtime has pulled the image there, and it succeeds if the
//	    image is to be had, whatever failed meanwhile.
//	I15 A SidecarSet never has more pods in an update than it allows, nor the last available pod of a workload. It updates
//	    each pod once, touches no other container, and leaves no pod half injected. Its rollout ends.
//	I16 A change of a ConfigMap leads to a RestartRollout of the workload that uses it, and no change to two. A time of a
//	    RestartSchedule makes one RestartRollout at most, not before it.
//	I17 No client sees more pods of a workload out of its EndpointSlices by Refit than may be unavailable: pods that were
//	    ready endpoints after something was begun on them, and do not serve again yet.
//	I18 A pod that serves is taken only while fewer pods of its workload than may be are unavailable without it: not ready,
//	    missing, or under way, whoever began it. A pod that is ready serves, also within minReadySeconds.
//	I19 No more pods of a workload are under way than may be unavailable, also of those that do not serve, all actors
//	    together: requests, updates of SidecarSets in place, evictions. A stop is under way until the instance has changed or its
//	    grace period has passed, whatever became of its request. Only pods that cannot come back by themselves do not count. What a user
//	    orders pod by pod counts for others; it has no limit of its own.
//	I20 No pod is taken while a PodDisruptionBudget that selects it allows nothing; one that is not ready, while the
//	    budget is not met. A budget allows nothing when it has said so for some seconds: nothing reserves a disruption for who
//	    has read the budget, as the Eviction API does.
//	I21 A RestartRollout is complete only when nothing that it has begun is under way, unless its deadline has ended it. Its status
//	    counts the pods that were restarted, and calls none restarting when nothing is under way any more.
//	I22 An InPlaceUpdatePolicy says that the update to a template is complete only when all pods of the workload have it, and says it in the end.
//	    It restarts no container of a pod twice for one change of the template, nor one that does not change. With InPlaceOnly
//	    no controller replaces a pod.
package history
