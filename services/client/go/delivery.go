package muster

import (
	"io"
	"os"
	"time"

	musterv1 "muster.example/proto/gen/go/muster/v1"
)

// Global is the node's name of a plugin that runs once.
const Global = "global"

// Key names one expected result.
type Key struct {
	Run, Plugin string
	// Node is the node's name, or Global.
	Node string
}

// Delivery is a result on its way.
type Delivery struct {
	// Key: the zero one is the configuration's.
	Key Key
	// Attempt numbers the tries to produce this result. A repeated delivery keeps the number and goes on
	// where it stopped; a higher one starts from nothing. 0: the time of a file's last change, so that
	// the same file resumes even after a restart of the sender; for a stream, the time now.
	Attempt int64
	// IsError: the body is a text that says why there is no result.
	IsError bool
	// MediaType such as "application/json". Exactly "application/gzip" is unpacked into the archive if
	// the body is a gzip tar.
	MediaType string
	// FileName is the file's own name, without a folder; at most 1024 bytes.
	FileName string
	// Body is read once, from its beginning to io.EOF. One that is an io.ReaderAt and an io.Seeker (an
	// *os.File) can be sent again from any byte, and its size and digest are named beforehand; of any
	// other, only what the server has not acknowledged is kept.
	Body io.Reader
	// Hold: how long to go on without any progress while the server is away; 0: until the context is
	// done. Who holds hears of a full disk (reason DISK_FULL) at once: nothing says that it passes soon.
	Hold time.Duration
	// LeaveWhenSpooled: end with a *HandedOverError when a relay without a way to the centre has taken the result;
	// otherwise Submit goes on until it is committed.
	LeaveWhenSpooled bool
	// OnBehalfOf is the URI of the verified peer that a gateway delivers for. Services accept it from
	// gateways alone.
	OnBehalfOf string
}

// Result is what the aggregator committed.
type Result struct {
	Key        Key
	Generation int64
	Size       int64
	// SHA256 may be empty while the server has not computed it yet.
	SHA256 []byte
	// NodeUnproven: it came with a credential for any node of the plugin.
	NodeUnproven bool
	CommitTime   time.Time
}

const smallResult = 64 << 10 // the largest that one call carries

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

// prepared gives a copy with everything filled in.
func (c *Client) prepared(d *Delivery) *Delivery {
	full := *d
	full.Key = c.key(d.Key)
	if full.Attempt == 0 {
		full.Attempt = time.Now().UnixNano()
		if file, ok := d.Body.(*os.File); ok {
			if info, err := file.Stat(); err == nil {
				full.Attempt = max(info.ModTime().UnixNano(), 1)
			}
		}
	}
	return &full
}
