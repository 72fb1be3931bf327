package fleet

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"syscall"
	"time"
)

// Direction is a direction of a link.
type Direction int

const (
	Up   Direction = iota // from the client
	Down                  // to the client
)

// The maximum that a link buffers of a connection in each direction, in addition to the socket buffers.
const (
	linkPiece      = 16 << 10
	linkPieces     = 16
	linkSocketRoom = 64 << 10
)

// FaultKind is what happens to a connection.
type FaultKind int

const (
	Reset  FaultKind = iota // both ends see a reset
	Flip                    // the next byte is changed; the connection continues
	Strand                  // nothing passes in this direction any more, not even the end; the other direction continues
)

// Fault happens once to one connection, after this many bytes in a direction.
type Fault struct {
	Kind  FaultKind
	Way   Direction
	After int64
}

// Link is a network link that a test slows down, silences and cuts: a TCP proxy that is transparent to both ends. Its
// methods may be called from several goroutines.
type Link struct {
	Address string // the address of its listener

	listener net.Listener
	dial     func() (net.Conn, error)
	ended    sync.WaitGroup

	mutex     sync.Mutex
	changed   chan struct{} // closed and replaced when a command changes a field below
	delay     time.Duration
	rate      int64 // bytes per second in each direction; 0: unlimited
	silent    [2]bool
	refusing  bool
	closed    bool
	passed    [2]int64 // bytes
	pace      [2]pacer // of rate
	cutAt     int64    // of passed[Up]; 0: never
	cut       chan struct{}
	cuts      int // so far
	faults    []Fault
	struck    int // faults that have happened
	crossings map[*crossing]bool
}

// crossing is a connection over the link.
type crossing struct {
	ends  [2]*net.TCPConn // the client and the server
	fault *Fault          // nil: none
	over  chan struct{}
	once  sync.Once
}

// end closes the connection; with `reset`, both ends see a reset.
func (c *crossing) end(reset bool) {
	c.once.Do(func() {
		close(c.over)
		for _, end := range c.ends {
			if reset {
				_ = end.SetLinger(0)
			}
			_ = end.Close()
		}
	})
}

// NewLink listens at an address of a host and forwards to an address as seen from there; on this host if none is given.
func NewLink(on *Host, address, to string) (*Link, error) {
	do := func(f func() error) error { return f() }
	if on != nil {
		do = on.Do
	}
	l := &Link{changed: make(chan struct{}), cut: make(chan struct{}), crossings: map[*crossing]bool{}}
	smallRoom := func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(socket uintptr) {
			err = syscall.SetsockoptInt(int(socket), syscall.SOL_SOCKET, syscall.SO_RCVBUF, linkSocketRoom)
		}), err)
	}
	l.dial = func() (connection net.Conn, err error) {
		err = do(func() (err error) {
			dialer := net.Dialer{Control: smallRoom, Timeout: 10 * time.Second}
			connection, err = dialer.Dial("tcp", to)
			return err
		})
		return connection, err
	}
	if err := do(func() (err error) {
		config := net.ListenConfig{Control: smallRoom}
		l.listener, err = config.Listen(context.Background(), "tcp", address)
		return err
	}); err != nil {
		return nil, err
	}
	l.Address = l.listener.Addr().String()
	l.ended.Add(1)
	go l.accept()
	return l, nil
}

// Slow delays every byte by `delay`, and limits each direction to `rate` bytes per second; 0: unlimited.
func (l *Link) Slow(delay time.Duration, rate int64) {
	l.change(func() { l.delay, l.rate = delay, rate })
}

// Silence makes the link half-open: connections remain open, new ones are accepted, and nothing passes in these
// directions, not even the end of a connection, until Heal. Bytes in flight remain held.
func (l *Link) Silence(ways ...Direction) {
	l.change(func() {
		for _, way := range ways {
			l.silent[way] = true
		}
	})
}

// Refuse resets every new connection, until Heal.
func (l *Link) Refuse() { l.change(func() { l.refusing = true }) }

// Heal ends Silence and Refuse. Held bytes pass, late.
func (l *Link) Heal() {
	l.change(func() { l.silent, l.refusing = [2]bool{}, false })
}

// Cut resets every connection. New ones are accepted.
func (l *Link) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cutNow()
}

// CutAfter cuts when this many more bytes have passed upstream; `done` is closed then.
func (l *Link) CutAfter(bytes int64) (done <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cutAt, l.cut = l.passed[Up]+bytes, make(chan struct{})
	return l.cut
}

// FaultNext makes each of the next connections have one of these faults, in this order. A connection that ends before its
// fault has used it up.
func (l *Link) FaultNext(faults ...Fault) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.faults = append(l.faults, faults...)
}

// Struck returns how many faults of FaultNext have happened.
func (l *Link) Struck() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.struck
}

// Passed returns how many bytes have passed in this direction.
func (l *Link) Passed(way Direction) int64 {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.passed[way]
}

// Close ends the link and every connection over it.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.change(func() { l.closed = true })
	l.Cut()
	l.ended.Wait()
	return err
}

func (l *Link) change(f func()) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// cutNow is called with the lock held.
func (l *Link) cutNow() {
	l.cuts++
	for c := range l.crossings {
		c.end(true)
	}
}

func (l *Link) accept() {
	defer l.ended.Done()
	for {
		connection, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.ended.Add(1)
		go l.cross(connection.(*net.TCPConn))
	}
}

func (l *Link) cross(from *net.TCPConn) {
	defer l.ended.Done()
	l.mutex.Lock()
	cuts := l.cuts
	l.mutex.Unlock()
	to, err := l.dial()
	if err != nil {
		_ = from.SetLinger(0)
		_ = from.Close()
		return
	}
	c := &crossing{ends: [2]*net.TCPConn{from, to.(*net.TCPConn)}, over: make(chan struct{})}
	l.mutex.Lock()
	l.crossings[c] = true
	if len(l.faults) > 0 {
		c.fault, l.faults = &l.faults[0], l.faults[1:]
	}
	if l.refusing || l.closed || l.cuts != cuts {
		c.end(true)
	}
	l.mutex.Unlock()
	var ways sync.WaitGroup
	for _, way := range []Direction{Up, Down} {
		pieces := make(chan piece, linkPieces)
		ways.Add(2)
		go func() { defer ways.Done(); l.readDirection(c, way, pieces) }()
		go func() { defer ways.Done(); l.writeDirection(c, way, pieces) }()
	}
	ways.Wait()
	c.end(false)
	l.mutex.Lock()
	delete(l.crossings, c)
	l.mutex.Unlock()
}

// piece is a unit of transfer: bytes, or the end of a direction.
type piece struct {
	bytes []byte
	reset bool // the end was a reset
	due   time.Time
}

// readDirection reads one direction. When the buffer is full it waits, and so does the sender.
func (l *Link) readDirection(c *crossing, way Direction, pieces chan<- piece) {
	defer close(pieces)
	put := func(p piece) bool {
		l.mutex.Lock()
		p.due = time.Now().Add(l.delay)
		l.mutex.Unlock()
		select {
		case pieces <- p:
			return true
		case <-c.over:
			return false
		}
	}
	for {
		buffer := make([]byte, linkPiece)
		n, err := c.ends[way].Read(buffer)
		if n > 0 && !put(piece{bytes: buffer[:n]}) {
			return
		}
		if err != nil {
			put(piece{reset: err != io.EOF})
			return
		}
	}
}

// writeDirection writes pieces to the other end when they are due.
func (l *Link) writeDirection(c *crossing, way Direction, pieces <-chan piece) {
	other := c.ends[1-way]
	left := int64(math.MaxInt64) // until the fault
	if c.fault != nil && c.fault.Way == way {
		left = c.fault.After
	}
	for p := range pieces {
		if !l.await(c, way, p) {
			return
		}
		switch {
		case p.reset:
			c.end(true)
			return
		case p.bytes == nil:
			_ = other.CloseWrite()
			return
		}
		strikes := left < int64(len(p.bytes))
		if strikes && c.fault.Kind == Flip {
			p.bytes[left] ^= 1
		} else if strikes {
			p.bytes = p.bytes[:left]
		}
		left -= int64(len(p.bytes))
		if _, err := other.Write(p.bytes); err != nil {
			// The other end is closed; the sender gets a reset, if the opposite direction is open.
			if l.await(c, 1-way, piece{}) {
				c.end(true)
			}
			return
		}
		l.count(way, len(p.bytes))
		if strikes && !l.strike(c) {
			return
		}
		if strikes {
			left = math.MaxInt64
		}
	}
}

// strike completes a fault, after the bytes before it have passed. It returns whether the direction continues.
func (l *Link) strike(c *crossing) bool {
	l.mutex.Lock()
	l.struck++
	l.mutex.Unlock()
	switch c.fault.Kind {
	case Reset:
		c.end(true)
	case Strand:
		<-c.over
	}
	return c.fault.Kind == Flip
}

// await waits until a piece may pass; false: it never will.
func (l *Link) await(c *crossing, way Direction, p piece) bool {
	for {
		l.mutex.Lock()
		silent, changed, now := l.silent[way], l.changed, time.Now()
		due := p.due
		if free := l.pace[way].due(); l.rate > 0 && free.After(due) {
			due = free
		}
		passes := !silent && !due.After(now)
		if passes && l.rate > 0 {
			l.pace[way].pass(now, len(p.bytes), l.rate)
		}
		l.mutex.Unlock()
		if passes {
			return true
		}
		var arrives <-chan time.Time
		if !silent {
			arrives = time.After(due.Sub(now))
		}
		select {
		case <-arrives:
		case <-changed:
		case <-c.over:
			return false
		}
	}
}

func (l *Link) count(way Direction, bytes int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.passed[way] += int64(bytes)
	if way == Up && l.cutAt != 0 && l.passed[Up] >= l.cutAt {
		l.cutAt = 0
		close(l.cut)
		l.cutNow()
	}
}
