package procfile

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/refit-project/refit/test/kit/procfs"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	line := func(comm string) string {
		return procfs.StatText(procfs.Process{PID: 8, PPID: 1, Comm: comm, Start: 257132, State: 'S'})
	}
	tests := map[string]struct {
		text string
		comm string
		bad  bool
	}{
		"plain":                       {text: line("nginx"), comm: "nginx"},
		"parenthesis and false state": {text: line("a) R 99 ("), comm: "a) R 99 ("},
		"newline":                     {text: line("a\nb"), comm: "a\nb"},
		"escape":                      {text: line("\x1b[2J"), comm: "\x1b[2J"},
		"empty name":                  {text: line(""), comm: ""},
		"empty file":                  {text: "", bad: true},
		"cut short":                   {text: line("nginx")[:40], bad: true},
		"no comm":                     {text: "8 S 1", bad: true},
		"reversed parentheses":        {text: "8 )( S 1", bad: true},
		"PPID beyond any PID":         {text: strings.Replace(line("x"), " S 1 ", " S 99999999 ", 1), bad: true},
		"start overflows":             {text: strings.Replace(line("x"), "257132", "99999999999999999999", 1), bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseStat([]byte(tt.text))
			if tt.bad {
				if !errors.Is(err, ErrMalformed) {
					t.Fatalf("err = %v, want malformed", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Comm) != tt.comm || got.State != 'S' || got.PPID != 1 || got.Start != 257132 {
				t.Errorf("got %+v, comm %q", got, got.Comm)
			}
		})
	}
}

// The container that each file of testdata/cgroups.txtar belongs to, by its first byte; "" for none.
func TestParseCgroup(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"containerd-v1-cgroupfs":        "a",
		"containerd-v1-systemd":         "a",
		"containerd-v1-mixed":           "a",
		"containerd-v2-systemd":         "a",
		"containerd-v2-cgroupfs":        "a",
		"containerd-v2-other-namespace": "a",
		"containerd-v1-other-namespace": "a",
		"crio-v1":                       "b",
		"crio-v2":                       "b",
		"crio-v2-container":             "b",
		"crio-conmon":                   "",
		"docker-v1":                     "c",
		"docker-v2-systemd":             "c",
		"cri-dockerd":                   "c",
		"podman-v2":                     "d",
		"podman-v1":                     "d",
		"podman-conmon":                 "",
		"kind":                          "a",
		"docker-in-pod":                 "a",
		"systemd-in-container":          "a",
		"host":                          "",
		"own-root-v2":                   "",
		"contradiction":                 "error",
		"no-colon":                      "error",
	}
	b, err := os.ReadFile("testdata/cgroups.txtar")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range txtar.Parse(b).Files {
		id, err := Cgroup(f.Data)
		switch {
		case err != nil:
			id = "error"
		case len(id) == 64:
			id = id[:1]
		}
		got[f.Name] = id
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("container by file (-want +got):\n%s", diff)
	}
}

// What a real node has, and what the kernel makes of it in a cgroup namespace.
func TestParseCapturedCgroup(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/cgroups-captured.txtar")
	if err != nil {
		t.Fatal(err)
	}
	const app = "1c7dcf8643a6994e2a11af2bf235be0d9db98ee28df14c149730c62b13d8aae4"
	want := map[string]string{
		"app": app, "neighbour": app, "self": "",
		"sidecar": "983b154e1ded4dec50c0ded8f5ebcc948c8ab5b9309372638b48b7468025f9a0",
		"sandbox": "5c0185325462116ace5542aa875f5e855a7d25a8fc45a96cccb793826c4f2e01",
	}
	got := map[string]string{}
	for _, f := range txtar.Parse(b).Files {
		if got[f.Name], err = Cgroup(f.Data); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("container by file (-want +got):\n%s", diff)
	}
}

func TestParseCredentials(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want Credentials
		bad  bool
	}{
		"all":             {text: "Name:\tx\nUid:\t1\t2\t3\t4\nCapEff:\t0000000000000020\n", want: Credentials{UID: 1, EUID: 2, Capabilities: 1 << 5}},
		"no capabilities": {text: "Name:\tx\nUid:\t4294967294\t0\t0\t0\n", want: Credentials{UID: 4294967294}},
		"name like a line": {
			text: procfs.StatusText(procfs.Process{Comm: "x\nUid:\t0\t0", UID: 7}), want: Credentials{UID: 7, EUID: 7},
		},
		"no Uid":            {text: "Name:\tx\n", bad: true},
		"Uid out of range":  {text: "\nUid:\t4294967296\t0\n", bad: true},
		"Uid cut short":     {text: "\nUid:\t1", bad: true},
		"CapEff not hex":    {text: "\nUid:\t1\t1\nCapEff:\tzz\n", bad: true},
		"CapEff of 17 hex":  {text: "\nUid:\t1\t1\nCapEff:\t" + strings.Repeat("0", 17) + "\n", bad: true},
		"empty, just ended": {text: "", bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseCredentials([]byte(tt.text))
			if tt.bad != errors.Is(err, ErrMalformed) {
				t.Fatalf("err = %v", err)
			}
			if !tt.bad && got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(procfs.StatText(procfs.Process{PID: 8, Comm: "a) S 1\n(", State: 'S'})))
	f.Add([]byte("1 () S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseStat(b)
		if err == nil && (s.PPID < 0 || s.PPID > MaxPID || len(s.Comm) > len(b)) {
			t.Errorf("accepted %+v", s)
		}
	})
}

func FuzzParseCredentials(f *testing.F) {
	f.Add([]byte(procfs.StatusText(procfs.Process{Comm: "x\nUid:\t0", UID: 7})))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCredentials(b)
		if err == nil && (c.UID < 0 || c.EUID < 0) {
			t.Errorf("accepted %+v", c)
		}
	})
}

func FuzzParseCgroup(f *testing.F) {
	b, err := os.ReadFile("testdata/cgroups.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range txtar.Parse(b).Files {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := Cgroup(b)
		if err == nil && id != "" && (len(id) != 64 || !strings.Contains(string(b), id)) {
			t.Errorf("container %q from %q", id, b)
		}
	})
}
