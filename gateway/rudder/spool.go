package rudder

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"muster.example/gateway/limits"
)

const (
	spoolFolder   = ".spool" // uploads for targets elsewhere, in the store's folder
	uploadDetails = ".json"  // the suffix of their descriptions
)

// The states of an upload.
const (
	statePending   = "pending"
	stateDelivered = "delivered"
	stateRefused   = "refused"
	stateExpired   = "expired"
)

// upload is a shared file in transit to the policy server, or its outcome. The spool's lock guards its fields.
type upload struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	Code      int       `json:"code,omitempty"`   // of the refusal
	Reason    string    `json:"reason,omitempty"` // of the state, or of the last failure while it is pending
	Target    string    `json:"target_uuid"`
	Source    string    `json:"source_uuid"`
	File      string    `json:"file_id"`
	Hash      string    `json:"hash"` // SHA-512
	Received  time.Time `json:"received"`
	Tries     int       `json:"tries"`
	Expires   int64     `json:"expires,omitempty"` // Unix seconds; 0: never
	Short     string    `json:"hash_sha256"`
	Signature string    `json:"signature,omitempty"`
	Size      int64     `json:"size"`
	Via       []string  `json:"via,omitempty"`
	// UpstreamID is its id at the policy server, while it is pending there, too.
	UpstreamID string    `json:"upstream_id,omitempty"`
	Ended      time.Time `json:"ended,omitzero"`

	before   *upload       // of the same id, which goes first
	done     chan struct{} // closed when it has ended
	recorded bool          // the description on disk has the outcome
	queue    *queue        // of its source, while it is pending
}

// queue is what the pending uploads of one source share.
type queue struct {
	pending int
	turns   chan struct{} // one token for each attempt in progress
}

// file returns the name of its content.
func (u *upload) file() string { return path.Join(spoolFolder, u.ID) }

// details returns the name of its description.
func (u *upload) details() string { return u.file() + uploadDetails }

// key identifies the shared file: a newer upload with the same key replaces an older one.
func (u *upload) key() [3]string { return [3]string{u.Target, u.Source, u.File} }

// spool stores uploads until they are delivered, and their outcomes for a while. Safe for concurrent use.
type spool struct {
	store *store
	log   *slog.Logger
	life  time.Duration // after which an upload expires
	// forward tries to forward an upload: true if it has ended.
	forward func(ctx context.Context, u *upload) (ended bool)
	// pause returns the time before the next attempt.
	pause func(tries int) time.Duration

	mu      sync.Mutex
	uploads map[string]*upload
	newest  map[[3]string]*upload // pending, by target, source and file
	pending int
	sources map[string]*queue // of those with pending uploads
	left    []*upload         // ended ones with files that could not be removed
	ended   outcomes
	counts  map[string]int // of ended uploads by state, including forgotten ones
	living  context.Context
	working *sync.WaitGroup
}

// open loads the uploads of an earlier process.
func (p *spool) open() error {
	root := p.store.root
	if err := root.MkdirAll(spoolFolder, 0o700); err != nil {
		return fmt.Errorf("rudder.shared_files_nodes: %w", err)
	}
	folder, err := root.Open(spoolFolder)
	if err != nil {
		return fmt.Errorf("rudder.shared_files_nodes: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("rudder.shared_files_nodes: %w", err)
	}
	var all []*upload
	for _, name := range names {
		id, described := strings.CutSuffix(name, uploadDetails)
		if !described {
			if !slices.Contains(names, name+uploadDetails) { // it was not acknowledged
				err = errors.Join(err, p.store.remove(path.Join(spoolFolder, name)))
			}
			continue
		}
		text, fault := root.ReadFile(path.Join(spoolFolder, name))
		u := &upload{}
		if fault == nil {
			fault = json.Unmarshal(text, u)
		}
		if fault != nil || u.ID != id {
			p.log.Error("cannot read an upload of the spool, it is skipped", "file", name, "error", fault)
			continue
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *upload) int {
		return cmp.Or(a.Ended.Compare(b.Ended), a.Received.Compare(b.Received), cmp.Compare(a.ID, b.ID))
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range all {
		p.uploads[u.ID] = u
		if u.State == statePending {
			p.begin(u)
			continue
		}
		u.recorded = true
		p.ended.add(u)
		p.clear(u) // the earlier process may have ended before it did
	}
	p.drop(time.Now())
	return err
}

// add stores a received file. When it returns, the upload survives the loss of power.
func (p *spool) add(h *share, got *received, expires int64, via []string, file *os.File, name string) (*upload, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	u := &upload{
		ID: hex.EncodeToString(random), State: statePending, Target: h.target, Source: h.source, File: h.file, Received: time.Now().UTC(),
		Hash: hex.EncodeToString(got.sha512), Short: hex.EncodeToString(got.sha256), Signature: hex.EncodeToString(h.signature),
		Size: got.size, Expires: expires, Via: via,
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil { // without the lock: it may take long
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending >= limits.Pending {
		return nil, refusal{http.StatusInsufficientStorage, fmt.Sprintf("%d uploads are pending already", p.pending)}
	}
	if q := p.sources[u.Source]; q != nil && q.pending >= limits.PendingOfSource {
		return nil, refusal{http.StatusInsufficientStorage, fmt.Sprintf("%d uploads of the source are pending already", q.pending)}
	}
	if err := p.store.root.Rename(name, u.file()); err != nil {
		return nil, err
	}
	p.store.count(u.file(), u.Size)
	if err := p.write(u); err != nil {
		return nil, errors.Join(err, p.store.remove(u.details()), p.store.remove(u.file()))
	}
	p.uploads[u.ID] = u
	p.begin(u)
	copied := *u
	return &copied, nil
}

// write makes the state of an upload durable. The lock is held.
func (p *spool) write(u *upload) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	file, name, err := p.store.create()
	if err != nil {
		return err
	}
	defer p.store.discard(file, name)
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	before := p.store.size(u.details())
	if err := p.store.root.Rename(name, u.details()); err != nil {
		return err
	}
	p.store.count(u.details(), -before)
	p.store.count(u.details(), int64(len(text)))
	return p.store.syncFolders(spoolFolder)
}

// begin starts to forward an upload, after an older one of the same id. The lock is held.
func (p *spool) begin(u *upload) {
	u.done, u.before = make(chan struct{}), p.newest[u.key()]
	p.newest[u.key()] = u
	if u.queue = p.sources[u.Source]; u.queue == nil {
		u.queue = &queue{turns: make(chan struct{}, limits.SendersOfSource)}
		p.sources[u.Source] = u.queue
	}
	u.queue.pending++
	p.pending++
	p.store.space.hold(u.Source, needOf(u.Size))
	p.working.Go(func() { p.deliver(u) })
}

// deliver tries until the upload has ended, or the gateway stops.
func (p *spool) deliver(u *upload) {
	if u.before != nil {
		select {
		case <-u.before.done:
		case <-p.living.Done():
			return
		}
		p.mu.Lock()
		u.before = nil
		p.mu.Unlock()
	}
	for p.living.Err() == nil {
		if p.attempt(u) {
			return
		}
		wait := p.pause(u.Tries)
		if u.Expires != 0 {
			wait = min(wait, max(0, time.Until(time.Unix(u.Expires+1, 0))))
		}
		select {
		case <-time.After(wait):
		case <-p.living.Done():
		}
	}
}

// attempt tries to forward an upload when it is the turn of its source. It reports whether the upload has ended. The
// uploads of a source take turns before those of all sources do, so that many of one source do not delay others.
func (p *spool) attempt(u *upload) (ended bool) {
	select {
	case u.queue.turns <- struct{}{}:
		defer func() { <-u.queue.turns }()
	case <-p.living.Done():
		return false
	}
	return p.endIfStale(u) || p.forward(p.living, u)
}

// endIfStale ends an upload that has expired, or that a newer one replaces.
func (p *spool) endIfStale(u *upload) bool {
	p.mu.Lock()
	newer := p.newest[u.key()]
	p.mu.Unlock()
	switch now := time.Now(); {
	case newer != u:
		p.end(u, stateRefused, 0, "a newer upload of the same file replaces it: "+newer.ID)
	case u.Expires != 0 && u.Expires < now.Unix():
		p.end(u, stateExpired, 0, "its time to live expired before the delivery")
	case now.Sub(u.Received) > p.life:
		p.end(u, stateExpired, 0, "it could not be delivered within "+p.life.String()+" (rudder.spool_time)")
	default:
		return false
	}
	return true
}

// note records a failure or the state at the policy server, and counts the attempt.
func (p *spool) note(u *upload, upstreamID, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.Tries++
	changed := u.UpstreamID != upstreamID
	u.UpstreamID, u.Reason = upstreamID, why
	if changed {
		if err := p.write(u); err != nil {
			p.log.Error("cannot write the spool", "upload", u.ID, "error", err)
		}
	}
}

// end records the outcome and deletes the content. An outcome that cannot be written is lost with the process.
func (p *spool) end(u *upload, state string, code int, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u.State, u.Code, u.Reason, u.Ended = state, code, why, time.Now().UTC()
	err := p.write(u)
	if err != nil {
		p.log.Error("the outcome of an upload is not durable", "upload", u.ID, "error", err)
	}
	u.recorded = err == nil
	p.clear(u)
	if p.newest[u.key()] == u {
		delete(p.newest, u.key())
	}
	if u.queue.pending--; u.queue.pending == 0 {
		delete(p.sources, u.Source)
	}
	p.pending--
	p.store.space.hold(u.Source, -needOf(u.Size))
	p.counts[state]++
	p.ended.add(u)
	p.remove(p.ended.removeAbove(limits.Outcomes))
	close(u.done)
	p.log.Info("upload ended", "upload", u.ID, "target", u.Target, "source", u.Source, "file", u.File, "state", state,
		"code", code, "reason", why)
}

// clear removes the content of an ended upload, and its description if that lacks the outcome: the next process would
// take the upload for a pending one and deliver it again, perhaps after a newer one. The lock is held.
func (p *spool) clear(u *upload) {
	var err error
	if !u.recorded {
		err = p.store.remove(u.details())
	}
	if err = errors.Join(err, p.store.remove(u.file())); err != nil {
		p.log.Error("cannot remove a file of the spool, there will be another attempt", "upload", u.ID, "error", err)
		p.left = append(p.left, u)
	}
}

// holds reports whether a file with this hash is pending.
func (p *spool) holds(h *share) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.newest[[3]string{h.target, h.source, h.file}]
	return u != nil && (u.Hash == h.hash || u.Short == h.hash) && (u.Expires == 0 || u.Expires >= time.Now().Unix())
}

// find returns the current state of an upload.
func (p *spool) find(id string) (upload, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.uploads[id]
	if u == nil {
		return upload{}, false
	}
	return *u, true
}

// forget drops old outcomes, and removes files that could not be removed before.
func (p *spool) forget(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left
	p.left = nil
	for _, u := range left {
		p.clear(u)
	}
	p.drop(now)
}

// drop drops outcomes that are too old or too many. The lock is held.
func (p *spool) drop(now time.Time) {
	p.remove(p.ended.removeBefore(now.Add(-limits.OutcomesTime)))
	p.remove(p.ended.removeAbove(limits.Outcomes))
}

// remove removes ended uploads. The lock is held.
func (p *spool) remove(all []*upload) {
	for _, u := range all {
		u.recorded = false
		p.clear(u)
		delete(p.uploads, u.ID)
	}
}

// waiting returns the number of pending uploads.
func (p *spool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending
}

// outcomes returns how many uploads ended in a state.
func (p *spool) outcomes(state string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[state]
}
