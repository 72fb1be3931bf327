package legacy

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"muster.example/gateway/listen"
)

// ports keeps the sockets that runs share: those whose clients name their run in the handshake. Usually
// there is one; a run that was made before the configuration named another port keeps its own. Safe for
// concurrent use.
type ports struct {
	host    string
	usual   int // 0: any
	sockets *listen.Sockets
	options listen.Options
	awaited func(name string) bool

	mu     sync.Mutex
	open   map[int]*listen.Shared // by the port that was asked for
	closed bool
}

// at opens a port, or gives the one that is open; 0 is the usual one.
func (p *ports) at(ctx context.Context, port int) (*listen.Shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errRestarting
	}
	if port == 0 || p.usual == 0 { // where any will do, what is open may be the one that is meant
		usual, err := p.bind(ctx, p.usual)
		if port == 0 || err == nil && usual.Port() == port {
			return usual, err
		}
	}
	return p.bind(ctx, port)
}

// bind opens a port unless it is open. The lock is held.
func (p *ports) bind(ctx context.Context, port int) (*listen.Shared, error) {
	if there := p.open[port]; there != nil && !there.Over() {
		return there, nil
	}
	name := "legacy-port/" + strconv.Itoa(port)
	socket, err := p.sockets.Listen(ctx, name, net.JoinHostPort(p.host, strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for runs that share a port: %w", err)
	}
	shared := listen.Share(socket, p.options, p.awaited)
	p.open[port] = shared
	return shared, nil
}

// close accepts nothing more. With a supervisor, clients wait for the next gateway in the kernel.
func (p *ports) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, shared := range p.open {
		_ = shared.Close()
	}
}
