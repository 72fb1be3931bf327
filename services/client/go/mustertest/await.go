package mustertest

import (
	"testing"
	"time"
)

// Await polls a condition until it holds. The test fails after a minute, far more than any test needs.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !AwaitFor(time.Minute, condition) {
		t.Fatal("timeout waiting until " + what)
	}
}

// AwaitFor polls a condition until it holds; it returns false after the limit.
func AwaitFor(limit time.Duration, condition func() bool) bool {
	for end := time.Now().Add(limit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
