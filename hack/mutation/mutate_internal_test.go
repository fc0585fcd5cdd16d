package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"testing"
)

const source = `package p

const limit = 3

func f(a, b int, ok bool, s []string) bool {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] == "" ||
			!ok && a <= b {
			continue
		}
		n++
	}
	_ = n
	switch {
	case n > limit, ok:
		n = limit
	}
	g := func() bool { return ok }
	return (g()) != (a==b)
}

func g(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	panic("never")
}
`

func TestMutantsOfAFile(t *testing.T) {
	t.Parallel()
	mutants, mutated, err := mutate("p/p.go", []byte(source), 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range mutants {
		if m.number != i+1 {
			t.Errorf("mutant %d has number %d", i+1, m.number)
		}
		got = append(got, m.key())
	}
	want := []string{
		`p/p.go f: negate: i < len(s)`, `p/p.go f: boundary: i < len(s)`,
		`p/p.go f: and/or: s[i] == "" || !ok && a <= b`, `p/p.go f: negate: s[i] == ""`, `p/p.go f: negate: ok`, `p/p.go f: and/or: !ok && a <= b`,
		`p/p.go f: negate: a <= b`, `p/p.go f: boundary: a <= b`, `p/p.go f: delete: continue`, `p/p.go f: delete: n++`,
		`p/p.go f: negate: n > limit`, `p/p.go f: boundary: n > limit`, `p/p.go f: negate: ok`, `p/p.go f: delete: n = limit`, `p/p.go f: negate: ok`,
		`p/p.go f: left only: s[i] == "" || !ok && a <= b`, `p/p.go f: right only: s[i] == "" || !ok && a <= b`,
		`p/p.go f: left only: !ok && a <= b`, `p/p.go f: right only: !ok && a <= b`,
		`p/p.go f: never: s[i] == "" || !ok && a <= b`, `p/p.go f: never: n > limit`, `p/p.go f: never: ok`,
		`p/p.go g: never: err != nil`, `p/p.go g: no error: err`,
		`p/p.go f: negate: (g()) != (a==b)`, `p/p.go f: negate: a==b`, `p/p.go g: negate: err != nil`,
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	typeCheck(t, string(mutated), "package p\n"+support[len("package %s"):])
}

func typeCheck(t *testing.T, sources ...string) {
	t.Helper()
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, source := range sources {
		file, err := parser.ParseFile(files, "", source, 0)
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	if _, err := config.Check("p", files, parsed, nil); err != nil {
		t.Errorf("%v\n%s", err, sources[0])
	}
}
