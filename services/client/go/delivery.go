package muster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/services/client/go/reasons"
)

// Global is the node of plugins that run once.
const Global = "global"

// Key identifies one expected result.
type Key struct {
	Run, Plugin string
	// Node is the node's name, or Global.
	Node string
}

// Delivery is a result to deliver.
type Delivery struct {
	// Key identifies the result; the zero Key is the configuration's.
	Key Key
	// Attempt numbers the attempts to produce this result. A repeated delivery has the same number and is
	// resumed; a higher number starts a new upload. 0: the modification time of a file, so that the same file
	// is resumed even after a restart of the sender; for a stream, the present time. If an earlier sender has a
	// higher number, because its clock is ahead, a delivery with 0 begins with the next one.
	Attempt int64
	// IsError: the body is a text with the reason why there is no result.
	IsError bool
	// MediaType is a type such as "application/json". A gzip tar with exactly "application/gzip" is unpacked
	// into the archive.
	MediaType string
	// FileName is the file's name without a folder, at most 1024 bytes.
	FileName string
	// Body is read once, from its beginning to io.EOF. A Body that is an io.ReaderAt and an io.Seeker (an
	// *os.File) can be resent from any byte, and its size and digest are sent beforehand; of any other, only
	// unacknowledged bytes are buffered.
	Body io.Reader
	// Hold limits the time without progress while the server is unreachable; 0: until the context is done.
	// With Hold, a full disk or run (reasons DISK_FULL, RUN_FULL) fails immediately, because it may last.
	Hold time.Duration
	// LeaveWhenSpooled: return a *SpooledError when a disconnected relay has spooled the result; otherwise
	// Submit continues until it is committed.
	LeaveWhenSpooled bool
	// OpenFirst: open the upload before Body is read, so that a delivery that cannot succeed fails without it. Set it only
	// for a body of more than 64 KiB, or if its sender waits until the body is read: a smaller one takes more calls then.
	OpenFirst bool
	// Forwarded: a gateway delivers for another sender, so the client does not sign. Options.Dial names that
	// sender to the services.
	Forwarded bool
}

// Result is a committed result.
type Result struct {
	Key        Key
	Generation int64
	Size       int64
	// SHA256 may be empty until the server has computed it.
	SHA256 []byte
	// NodeUnproven: it was delivered with a credential for any node of the plugin.
	NodeUnproven bool
	CommitTime   time.Time
}

const smallResult = 64 << 10 // the largest result in one call

func (d *Delivery) description() *musterv1.ResultDescription {
	return &musterv1.ResultDescription{
		Key:       &musterv1.ResultKey{Run: d.Key.Run, Plugin: d.Key.Plugin, Node: d.Key.Node},
		Attempt:   d.Attempt,
		IsError:   d.IsError,
		MediaType: d.MediaType,
		FileName:  d.FileName,
	}
}

func fromResult(r *musterv1.Result) *Result {
	return &Result{
		Key:          Key{Run: r.GetKey().GetRun(), Plugin: r.GetKey().GetPlugin(), Node: r.GetKey().GetNode()},
		Generation:   r.GetGeneration(),
		Size:         r.GetSize(),
		SHA256:       r.GetSha256(),
		NodeUnproven: r.GetDelivery().GetNodeUnproven(),
		CommitTime:   r.GetCommitTime().AsTime(),
	}
}

// confirmed returns the committed result if it is this delivery. The service answers an error with the result that it
// keeps, which may be another one. A gateway passes that answer on: its sender cannot use the difference.
func (d *Delivery) confirmed(committed *musterv1.Result, sum summary) (*Result, error) {
	same := committed.GetOutcome() != musterv1.Outcome_OUTCOME_GENUINE && committed.GetSize() == sum.size &&
		committed.GetCrc32C() == sum.crc32c &&
		(len(committed.GetSha256()) == 0 || bytes.Equal(committed.GetSha256(), sum.sha256))
	if d.IsError && !d.Forwarded && !same {
		kept, next := "result", "Keep the committed result. The audit log names both senders."
		if committed.GetOutcome() == musterv1.Outcome_OUTCOME_ERROR {
			kept, next = "error", "Deliver a genuine result. It replaces the committed error until the run is sealed."
		}
		return nil, &Error{Code: "ALREADY_EXISTS", Reason: reasons.ResultConflict,
			Message: fmt.Sprintf("another %s of plugin %q from node %q is committed; this one was not stored",
				kept, d.Key.Plugin, d.Key.Node),
			NextStep: next}
	}
	return fromResult(committed), nil
}

// prepared returns a copy with all fields set.
func (c *Client) prepared(d *Delivery) *Delivery {
	full := *d
	full.Key = c.key(d.Key)
	// The signature covers these texts as they are sent.
	full.MediaType = strings.ToValidUTF8(d.MediaType, "\uFFFD")
	full.FileName = strings.ToValidUTF8(d.FileName, "\uFFFD")
	if full.Attempt == 0 {
		full.Attempt = time.Now().UnixNano()
		if file, ok := d.Body.(*os.File); ok {
			if info, err := file.Stat(); err == nil {
				// The server refuses a time in the future.
				full.Attempt = min(max(info.ModTime().UnixNano(), 1), full.Attempt)
			}
		}
	}
	return &full
}
