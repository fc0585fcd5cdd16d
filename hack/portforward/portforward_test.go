package portforward

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestDialOutlastsAKubectlThatEnds: kubectl closes its listener some time before it ends, when a connection to the pod breaks.
func TestDialOutlastsAKubectlThatEnds(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncd %s\nif mkdir first 2>/dev/null; then echo %s; else echo %s; fi\nexec sleep 60\n", folder, closed.Addr(), open.Addr())
	kubectl := filepath.Join(folder, "kubectl")
	if err := os.WriteFile(kubectl, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	port := &Port{Kubectl: kubectl, Namespace: "web", Pod: "web-0", Number: 80}
	defer port.Close()
	connection, err := port.Dial(t.Context())
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	if got := connection.RemoteAddr().String(); got != open.Addr().String() {
		t.Errorf("connected to %s, want %s", got, open.Addr())
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
}
