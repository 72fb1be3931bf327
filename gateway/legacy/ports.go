package legacy

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"

	"muster.example/gateway/listen"
)

// ports holds the sockets that runs share; clients name their run in the handshake. Usually there is one; a run from
// before a change of the configured port keeps its port. Safe for concurrent use.
type ports struct {
	host    string
	usual   int // 0: any
	sockets *listen.Sockets
	options listen.Options
	awaited func(name string) bool

	mu     sync.Mutex
	open   map[int]*listen.Shared // by the requested port
	closed bool
}

// at opens a port, or returns the open one; 0 is the usual port.
func (p *ports) at(ctx context.Context, port int) (*listen.Shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errRestarting
	}
	if port == 0 || p.usual == 0 { // if any port is allowed, an open one may be the requested one
		usual, err := p.bind(ctx, p.usual)
		if port == 0 || err == nil && usual.Port() == port {
			return usual, err
		}
	}
	return p.bind(ctx, port)
}

// bind opens a port unless it is open. The lock is held.
func (p *ports) bind(ctx context.Context, port int) (*listen.Shared, error) {
	if open := p.open[port]; open != nil && !open.Closed() {
		return open, nil
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

// close accepts nothing more. With a supervisor, clients wait in the kernel for the next gateway.
func (p *ports) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, shared := range p.open {
		_ = shared.Close()
	}
}
