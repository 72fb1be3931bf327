package rudder

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.example/services/client/go/mustertest"
)

// fakeTimers are timers that the test expires.
type fakeTimers struct {
	mu  sync.Mutex
	all []*fakeTimer
}

type fakeTimer struct {
	timers  *fakeTimers
	running bool
	call    func()
}

func (f *fakeTimers) afterFunc(_ time.Duration, call func()) timer {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{f, true, call}
	f.all = append(f.all, t)
	return t
}

// expire expires all running timers.
func (f *fakeTimers) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.all {
		if t.running {
			t.running = false
			t.call()
		}
	}
}

func (t *fakeTimer) set(running bool) (before bool) {
	t.timers.mu.Lock()
	defer t.timers.mu.Unlock()
	before, t.running = t.running, running
	return before
}

// Stop implements timer.
func (t *fakeTimer) Stop() bool { return t.set(false) }

// Reset implements timer.
func (t *fakeTimer) Reset(time.Duration) bool { return t.set(true) }

// expireAfter reads an answer until it has these texts, and then expires the timers until the answer ends. It returns
// the whole answer.
func (f *fakeTimers) expireAfter(t *testing.T, response *http.Response, wanted ...string) string {
	t.Helper()
	defer response.Body.Close()
	reader, text := bufio.NewReader(response.Body), ""
	for slices.ContainsFunc(wanted, func(want string) bool { return !strings.Contains(text, want) }) {
		next, err := reader.ReadString('\n')
		if text += next; err != nil {
			t.Fatalf("%q has not all of %q: %v", text, wanted, err)
		}
	}
	rest := make(chan string, 1)
	go func() {
		more, _ := io.ReadAll(reader)
		rest <- string(more)
	}()
	mustertest.Await(t, "the answer ends", func() bool {
		f.expire()
		select {
		case more := <-rest:
			text += more
			return true
		default:
			return false
		}
	})
	return text
}
