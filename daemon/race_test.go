//go:build race

package daemon

// raceDetector makes everything several times slower.
const raceDetector = true
