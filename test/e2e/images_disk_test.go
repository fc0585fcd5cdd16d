package e2e_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/refit-project/refit/api/v1beta1"
)

// containerdOf is the process of a node's container runtime.
func (s *fixture) containerdOf(node string) int {
	s.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(s.state, "nodes", node, "containerd.sock"))
	s.check(err, "connect to containerd")
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	s.check(err, "connect to containerd")
	var peer *unix.Ucred
	var peerErr error
	s.check(raw.Control(func(fd uintptr) { peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }), "find containerd")
	s.check(peerErr, "find containerd")
	return int(peer.Pid)
}

// smallDisk has a node keep the contents of its images on a file system of its own, with that much room, until the test ends.
// The returned function makes more room.
func (s *fixture) smallDisk(node string, room int64) (grow func()) {
	s.t.Helper()
	s.needsOwnCluster(s.t)
	folder, err := filepath.Abs(filepath.Join(s.state, "nodes", node))
	s.check(err, "find the folder of node %s", node)
	contents, small := filepath.Join(folder, "containerd", "io.containerd.content.v1.content"), filepath.Join(folder, "small-disk")
	s.check(os.MkdirAll(small, 0o700), "make a mount point")
	s.t.Cleanup(func() { _ = os.Remove(small) })
	namespace := "--mount=/proc/" + strconv.Itoa(s.containerdOf(node)) + "/ns/mnt"
	onNode := func(args ...string) {
		s.t.Helper()
		out, err := exec.CommandContext(context.WithoutCancel(s.t.Context()), "nsenter", append([]string{namespace}, args...)...).CombinedOutput()
		if err != nil {
			s.t.Fatalf("%s on node %s: %v: %s", strings.Join(args, " "), node, err, out)
		}
	}
	const page = 4096
	used := int64(0)
	s.check(filepath.WalkDir(contents, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		used += (info.Size() + 2*page - 1) / page * page
		return err
	}), "measure the contents of images")
	onNode("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", used+room), "refit-small-disk", small)
	s.t.Cleanup(func() { onNode("umount", "--lazy", small) })
	onNode("cp", "-a", contents+"/.", small)
	onNode("mount", "--bind", small, contents)
	s.t.Cleanup(func() { onNode("umount", "--lazy", contents) })
	return func() { onNode("mount", "-o", fmt.Sprintf("remount,size=%d", used+room+16*layer), small) }
}

// The disk of a node is full: a pull ends as its policy says, with what the runtime says, and leaves the pod that it was for
// alone; one that may be tried again ends well when there is room. It is not parallel: the whole node has no room.
func TestFullDiskFailsPullsUntilThereIsRoom(t *testing.T) {
	s := newFixture(t)
	s.needsOwnCluster(t)
	const full = "no space left on device"
	node := s.registryNode()
	host := s.registry(map[string]served{"once": {Size: layer}, "pod": {Size: layer}, "later": {Size: layer}})
	before := s.gated(on(node, s.podOf("web", shell("app", obedient))))
	grow := s.smallDisk(node, layer/2)
	// Its content goes with the small disk.
	t.Cleanup(func() { s.ctr(node, "images", "rm", "--sync", host+"/later:v1") })

	s.pull("once", host+"/once:v1", s.onFirst(1, 60))
	job := s.waitFor("Failed", "once")
	s.observed("message: %s", job.Status.Message)
	if !containsAll(job.Status.Message, []string{"attempt 2 of 2", full}) {
		t.Errorf("message %q", job.Status.Message)
	}
	said, code := s.set("image", "pod/web", "app="+host+"/pod:v1")
	if code != 1 || !containsAll(said, []string{"the pod has not been changed", full}) {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	s.untouched(before, "app")

	s.pull("later", host+"/later:v1", s.onFirst(20, 60))
	s.awaitTag(node, host+"/later", "v1", func(phase, message string) bool { return phase != "Failed" && strings.Contains(message, full) })
	grow()
	s.waitFor("Complete", "later")
	if s.onNode(node, host+"/later:v1") == "" || s.onNode(node, host+"/once:v1") != "" {
		t.Error("the node has not the image that was pulled when there was room, or one that was not")
	}
	if after := s.pod("web"); !podReady(after) {
		t.Error("the pod is not ready")
	}
}

// awaitTag waits for what the NodeImage of a node says of a tag.
func (s *fixture) awaitTag(node, repository, tag string, done func(phase, message string) bool) {
	s.t.Helper()
	s.await("status of "+repository, func(ctx context.Context) (bool, error) {
		object := &v1beta1.NodeImage{}
		if err := s.Get(ctx, client.ObjectKey{Name: node}, object); err != nil {
			return false, err
		}
		_, is := nodeImage(object, repository, tag)
		return is != nil && done(string(is.Phase), is.Message), nil
	})
}
