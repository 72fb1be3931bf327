package rudder

import (
	"strconv"
	"testing"
	"time"

	"muster.example/gateway/limits"
)

// One source with very many outcomes removes its own, not those of others.
func TestOutcomesOfOneSourceDoNotRemoveThoseOfOthers(t *testing.T) {
	s := startExtended(t)
	spool := s.server.spool
	add := func(source, id string) {
		spool.mu.Lock()
		defer spool.mu.Unlock()
		u := &upload{ID: id, Source: source, State: stateDelivered, Ended: time.Now()}
		spool.uploads[u.ID] = u
		spool.ended.add(u)
	}
	add("n-b", "other")
	for i := range limits.Outcomes + 5 {
		add("n-a", strconv.Itoa(i))
	}
	spool.forget(time.Now())
	for id, want := range map[string]int{"other": 200, "5": 404, "6": 200} {
		if got := s.call("GET", "shared-files/uploads/"+id, nil); got.code != want {
			t.Error(id, got)
		}
	}
	if spool.ended.count != limits.Outcomes || len(spool.uploads) != limits.Outcomes {
		t.Error(spool.ended.count, len(spool.uploads))
	}
}

func TestOutcomesOfEachSourceExpire(t *testing.T) {
	var all outcomes
	now := time.Now()
	for i, source := range []string{"n-a", "n-a", "n-b"} {
		all.add(&upload{ID: strconv.Itoa(i), Source: source, Ended: now.Add(time.Duration(i) * time.Second)})
	}
	if got := all.removeBefore(now); len(got) != 1 || got[0].ID != "0" || all.count != 2 {
		t.Errorf("%d removed, %d left", len(got), all.count)
	}
	if got := all.removeBefore(now.Add(time.Minute)); len(got) != 2 || all.count != 0 || len(all.ofSource) != 0 {
		t.Errorf("%d removed, %d left", len(got), all.count)
	}
}
