package main

import (
	"syscall"
	"time"
)

// ownCPU returns the CPU time of this program and of its child processes that have ended.
func ownCPU() time.Duration {
	var all time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if syscall.Getrusage(who, &usage) == nil {
			all += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	return all
}
