// Package compiled caches compiled PodProbeMarkers.
package compiled

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/refit-project/refit/api/v1alpha1"
	"github.com/refit-project/refit/internal/guard"
	"github.com/refit-project/refit/probe/podprobe"
)

// Markers caches the Marker of each generation of a PodProbeMarker. Validating a hundred probes takes a millisecond,
// and each reconcile of a node needs the markers of all namespaces.
type Markers struct {
	Guard *guard.Guard // catches panics while one marker is compiled

	mu     sync.Mutex
	byName map[types.NamespacedName]marker
}

type marker struct {
	uid        types.UID
	generation int64
	compiled   podprobe.Marker
}

// Compile returns the Markers of the given PodProbeMarkers. everything says that these are all PodProbeMarkers of the
// cluster; then Compile forgets the others.
func (c *Markers) Compile(all []v1alpha1.PodProbeMarker, everything bool) []podprobe.Marker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byName == nil {
		c.byName = map[types.NamespacedName]marker{}
	}
	if everything && len(c.byName) > len(all) {
		kept := make(map[types.NamespacedName]marker, len(all))
		for i := range all {
			key := types.NamespacedName{Namespace: all[i].Namespace, Name: all[i].Name}
			if known, ok := c.byName[key]; ok {
				kept[key] = known
			}
		}
		c.byName = kept
	}
	return podprobe.CompileWith(all, c.find)
}

// find returns the Marker of a PodProbeMarker. The caller holds mu.
func (c *Markers) find(of *v1alpha1.PodProbeMarker) podprobe.Marker {
	key := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
	known, ok := c.byName[key]
	if !ok || known.uid != of.UID || known.generation != of.Generation {
		known = marker{uid: of.UID, generation: of.Generation}
		if !c.Guard.Try("podprobes", guard.Of(of), func() { known.compiled = podprobe.NewMarker(of) }) {
			known.compiled = podprobe.NewMarker(&v1alpha1.PodProbeMarker{ObjectMeta: of.ObjectMeta}) // selects no pods
		}
		c.byName[key] = known
	}
	return known.compiled
}
