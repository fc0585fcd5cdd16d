package main

import (
	"errors"
	"fmt"
	"slices"
)

const project = "ghcr.io/refit-project"

// validate reports every fault of the options, and fills in the repository.
func (o *Options) validate() error {
	var faults []error
	if o.Push != "" && o.Key == "" && !o.Keyless && !o.Unsigned {
		faults = append(faults, errors.New("what is pushed has to be signed: --key or --keyless; or --unsigned"))
	}
	if o.Key != "" && o.Keyless {
		faults = append(faults, errors.New("--key and --keyless exclude each other"))
	}
	if o.Unsigned && (o.Key != "" || o.Keyless) {
		faults = append(faults, errors.New("--unsigned excludes --key and --keyless"))
	}
	for _, platform := range o.Platforms {
		if !slices.Contains(userPlatforms, platform) {
			faults = append(faults, fmt.Errorf("platform %q: want some of %q", platform, userPlatforms))
		}
	}
	if len(o.only(nodePlatforms)) == 0 {
		faults = append(faults, fmt.Errorf("the images need one of the platforms %q", nodePlatforms))
	}
	switch {
	case o.Repository == "" && o.Push == "":
		o.Repository = project
	case o.Repository == "":
		o.Repository = o.Push
	case o.Push != "" && o.Push != o.Repository:
		faults = append(faults, errors.New("--repository and --push differ: the chart names its images where they are pushed to"))
	}
	return errors.Join(faults...)
}

// only are the platforms that are built.
func (o *Options) only(platforms []string) []string {
	if len(o.Platforms) == 0 {
		return platforms
	}
	return slices.DeleteFunc(slices.Clone(platforms), func(platform string) bool { return !slices.Contains(o.Platforms, platform) })
}
