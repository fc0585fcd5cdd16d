package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refit-project/refit/hack/release/provenance"
	"github.com/refit-project/refit/hack/release/signing"
)

// unsummed are the files that the checksums do not cover, since they are made from them, or differ from run to run.
var unsummed = []string{sumsFile, signatureFile, envelopeFile, bundleFile}

// Verify checks that the files of a release are the files of its checksums and of its provenance, that there are no others, and, with
// a verifier, that both are signed. It returns how many files there are.
func Verify(folder string, verifier *signing.Verifier) (int, error) {
	text, err := os.ReadFile(filepath.Join(folder, sumsFile))
	if err != nil {
		return 0, fmt.Errorf("verify: %w", err)
	}
	sums, err := readSums(string(text))
	if err != nil {
		return 0, fmt.Errorf("verify: %w", err)
	}
	statement, err := os.ReadFile(filepath.Join(folder, provenanceFile))
	if err != nil {
		return 0, fmt.Errorf("verify: %w", err)
	}
	faults := []error{compare(folder, sums), covered(sums, statement)}
	if verifier != nil {
		faults = append(faults, signatures(folder, verifier, text, statement))
	}
	if err := errors.Join(faults...); err != nil {
		return 0, fmt.Errorf("verify: %w", err)
	}
	return len(sums), nil
}

func readSums(text string) (map[string]string, error) {
	sums := map[string]string{}
	for line := range strings.Lines(text) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || name != filepath.Base(name) {
			return nil, fmt.Errorf("%s: %q is no line of sha256sum", sumsFile, line)
		}
		sums[name] = sum
	}
	if len(sums) == 0 {
		return nil, fmt.Errorf("%s is empty", sumsFile)
	}
	return sums, nil
}

// compare compares the files of the folder with their checksums.
func compare(folder string, sums map[string]string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var faults []error
	missing := maps.Clone(sums)
	for _, entry := range entries {
		name := entry.Name()
		if slices.Contains(unsummed, name) {
			continue
		}
		delete(missing, name)
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		switch want, ok := sums[name]; {
		case !ok:
			faults = append(faults, fmt.Errorf("%s is not of the release", name))
		case want != hex.EncodeToString(sum[:]):
			faults = append(faults, fmt.Errorf("%s has been changed", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		faults = append(faults, fmt.Errorf("%s is missing", name))
	}
	return errors.Join(faults...)
}

// covered checks that the provenance is about all files but itself.
func covered(sums map[string]string, statement []byte) error {
	subjects, err := provenance.Subjects(statement)
	if err != nil {
		return err
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if name != provenanceFile && subjects[name] != sums[name] {
			faults = append(faults, fmt.Errorf("%s is not what %s states", name, provenanceFile))
		}
	}
	return errors.Join(faults...)
}

func signatures(folder string, verifier *signing.Verifier, sums, statement []byte) error {
	signed, err := os.ReadFile(filepath.Join(folder, signatureFile))
	if err != nil {
		return err
	}
	if err := verifier.Verify(sums, signed); err != nil {
		return fmt.Errorf("%s: %w", signatureFile, err)
	}
	envelope, err := os.ReadFile(filepath.Join(folder, envelopeFile))
	if err != nil {
		return err
	}
	payload, err := verifier.Open(envelope, provenance.PayloadType)
	if err != nil {
		return fmt.Errorf("%s: %w", envelopeFile, err)
	}
	if !bytes.Equal(payload, statement) {
		return fmt.Errorf("%s is not about %s", envelopeFile, provenanceFile)
	}
	return nil
}
