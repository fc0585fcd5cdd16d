// Package schedule decides what a RestartSchedule creates: it parses the cron expression (Times), admits schedules
// (Admit), and decides which RestartRollout to create and which to delete (Next).
//
// The package only decides: it takes values and the time as arguments and returns values. Clients, goroutines and
// sleeping must stay out.
package schedule
