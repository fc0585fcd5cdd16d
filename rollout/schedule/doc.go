// Package schedule decides what a RestartSchedule creates: it reads the cron expression (Times), admits schedules (Admit),
// and says which RestartRollout is due and which have to be deleted (Next).
//
// It holds decisions only: values in, values out, the time as an argument. Clients, goroutines and sleeping must stay out.
package schedule
