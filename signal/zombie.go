package signal

import (
	"context"
	"strconv"
)

// DeadChildren returns the PIDs of this program's children that have ended and were not waited for, in order.
func (f *FS) DeadChildren(ctx context.Context) ([]int, error) {
	all, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	var dead []int
	for _, pid := range all {
		st, err := f.stat(strconv.Itoa(pid))
		if err == nil && st.Dead() && st.PPID == f.self && f.self != 0 {
			dead = append(dead, pid)
		}
	}
	return dead, nil
}
