// Package hotupdate replaces files under a running program: fetch, verify, write beside, swap, reload, and
// confirm or roll back. Whoever reads the files sees the old ones or the new ones, complete, at every instant
// and after a kill at any instant.
//
// It contains: bounded download, digests and archives, revisions on disk, the atomic swap, and the order
// of it all. Searching processes, serving HTTP and the Kubernetes API must stay out; what is to be signalled
// or run is decided behind ports.
//
// On disk, in the folder that is shared with the program:
//
//	web/index.html                    link to ../..data/web/index.html
//	..data                            link to ..refit/revisions/<id>/files; one rename moves all files
//	..refit/revisions/<id>/files/     a revision, never changed once it has its name
//	..refit/revisions/<id>/manifest.json
//	..refit/state.json                what is current, what was accepted, what is under way
//	..refit/recorded                  when that was accepted which has been recorded outside of the folder
//	..refit/tmp/                      emptied at start
//
// A link is made before the swap for a file that is new, and removed after it for one that is no more: both
// read as "no such file" while the other revision is in force. All paths go through os.Root, since the program
// may plant links of its own.
package hotupdate
