// Package hotupdate replaces files of a running program: it fetches and verifies them, writes them beside the current ones,
// swaps, reloads, and confirms or rolls back. A reader of the files sees either all old or all new ones at every moment,
// also if the process is killed.
//
// It contains: bounded download, digests and archives, revisions on disk, the atomic swap, and the order of these steps.
// Searching processes, serving HTTP and the Kubernetes API must stay out; which process is signalled or command is run is
// decided behind interfaces.
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
// The link of a new file is created before the swap, and the link of a removed file is deleted after it. In between, such a
// link leads nowhere: the file does not exist. All paths go through os.Root, because the program can create links in the
// folder.
package hotupdate
