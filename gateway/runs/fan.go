package runs

import musterv1 "muster.example/proto/gen/go/muster/v1"

// Fan notifies several followers, in order.
type Fan []Follower

// Snapshot implements Follower.
func (f Fan) Snapshot(runs []*musterv1.Run, revoked []string) {
	for _, one := range f {
		one.Snapshot(runs, revoked)
	}
}

// Changed implements Follower.
func (f Fan) Changed(run *musterv1.Run) {
	for _, one := range f {
		one.Changed(run)
	}
}

// Deleted implements Follower.
func (f Fan) Deleted(run string) {
	for _, one := range f {
		one.Deleted(run)
	}
}

// Revoked implements Follower.
func (f Fan) Revoked(subject string) {
	for _, one := range f {
		one.Revoked(subject)
	}
}

// Connected implements Follower.
func (f Fan) Connected(ok bool, fault string) {
	for _, one := range f {
		one.Connected(ok, fault)
	}
}
