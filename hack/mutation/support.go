package main

// support is added to each mutated package.
const support = `package %s

import (
	"cmp"
	"os"
	"strconv"
)

var mutationOn, _ = strconv.Atoi(os.Getenv("REFIT_MUTANT"))

func mutationNegate(n int, value bool) bool { return value != (n == mutationOn) }

func mutationNever(n int, value bool) bool { return value && n != mutationOn }

func mutationError(n int, err error) error {
	if n == mutationOn {
		return nil
	}
	return err
}

func mutationKeep(n int) bool { return n != mutationOn }

func mutationAnd(n int, a bool, b func() bool) bool {
	switch mutationOn {
	case n:
		return a || b()
	case n + 1:
		return a
	case n + 2:
		return b()
	}
	return a && b()
}

func mutationOr(n int, a bool, b func() bool) bool {
	switch mutationOn {
	case n:
		return a && b()
	case n + 1:
		return a
	case n + 2:
		return b()
	}
	return a || b()
}

func mutationLess[T cmp.Ordered](n int, a, b T) bool { return a < b || n == mutationOn && a == b }

func mutationLessOrEqual[T cmp.Ordered](n int, a, b T) bool { return a < b || n != mutationOn && a == b }
`
