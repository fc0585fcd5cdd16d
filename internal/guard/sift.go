package guard

import "errors"

// Sift calls do with all items. If that panics, it calls do with each item alone to find the ones that cause panics,
// reports these by their subject, and calls do with the others. It returns the items that were left out in left; the
// results of do do not include them. It returns an error if do panics with the others too.
func Sift[T any](g *Guard, where string, items []T, subject func(T) Subject, do func([]T)) (left []T, err error) {
	var silent *Guard
	all := func(items []T) error {
		return silent.Do(where, nil, func() error { do(items); return nil })
	}
	err = all(items)
	if err == nil {
		return nil, nil
	}
	var others []T
	for _, item := range items {
		if g.Try(where, subject(item), func() { do([]T{item}) }) {
			others = append(others, item)
		} else {
			left = append(left, item)
		}
	}
	if len(left) == 0 {
		return nil, err
	}
	return left, errors.Join(all(others))
}
