package hotupdate

// OpenWithSteps is Open with a hook that is called after each thing done that a kill could follow.
func OpenWithSteps(config Config, step func(string)) (*Updater, error) { return open(config, step) }
