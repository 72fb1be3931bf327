package rudder

import (
	"slices"
	"time"
)

// outcomes are the ended uploads of each source. Not safe for concurrent use.
type outcomes struct {
	ofSource map[string][]*upload // the oldest first
	count    int
}

// add adds an upload that ended after the others of its source.
func (o *outcomes) add(u *upload) {
	if o.ofSource == nil {
		o.ofSource = map[string][]*upload{}
	}
	o.ofSource[u.Source] = append(o.ofSource[u.Source], u)
	o.count++
}

// removeBefore removes and returns the uploads that ended at that time or before it.
func (o *outcomes) removeBefore(end time.Time) (removed []*upload) {
	for source, all := range o.ofSource {
		kept := slices.IndexFunc(all, func(u *upload) bool { return u.Ended.After(end) })
		if kept < 0 {
			kept = len(all)
		}
		removed = append(removed, o.cut(source, kept)...)
	}
	return removed
}

// removeAbove removes and returns uploads until at most `most` remain: each time the oldest one of the source that has
// the most, so that no source removes those of another one with fewer.
func (o *outcomes) removeAbove(most int) (removed []*upload) {
	for o.count > most {
		var largest string
		for source, all := range o.ofSource {
			if len(all) > len(o.ofSource[largest]) {
				largest = source
			}
		}
		removed = append(removed, o.cut(largest, 1)...)
	}
	return removed
}

// cut removes and returns the n oldest uploads of a source.
func (o *outcomes) cut(source string, n int) []*upload {
	all := o.ofSource[source]
	o.count -= n
	if n == len(all) {
		delete(o.ofSource, source)
	} else {
		o.ofSource[source] = all[n:]
	}
	return all[:n]
}
