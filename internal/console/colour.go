package console

// Colour reports whether words are coloured. It is false if the output is not a terminal.
type Colour bool

// Red is for what has failed.
func (c Colour) Red(text string) string { return c.paint("31", text) }

// Green is for what has succeeded.
func (c Colour) Green(text string) string { return c.paint("32", text) }

// Yellow is for what is in progress.
func (c Colour) Yellow(text string) string { return c.paint("33", text) }

func (c Colour) paint(code, text string) string {
	if !c {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
