package fleet

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Direction is a way over a link.
type Direction int

const (
	Up   Direction = iota // from who connected
	Down                  // to who connected
)

// What a link holds of a connection, each way, at most; the sockets' own buffers beside it.
const (
	linkPiece      = 16 << 10
	linkPieces     = 16
	linkSocketRoom = 64 << 10
)

// Link is a stretch of network that a test slows down, silences and cuts: a TCP proxy, of which the programs at
// its ends know nothing. Its methods may be called from several goroutines.
type Link struct {
	Address string // where it is reached

	listener net.Listener
	dial     func() (net.Conn, error)
	ended    sync.WaitGroup

	mutex     sync.Mutex
	changed   chan struct{} // closed, and another one made, when something below is changed by a command
	delay     time.Duration
	rate      int64 // bytes a second each way; 0: as they come
	silent    [2]bool
	refusing  bool
	closed    bool
	passed    [2]int64     // bytes
	free      [2]time.Time // when the link has room for the next bytes
	cutAt     int64        // of passed[Up]; 0: nowhere
	cut       chan struct{}
	cuts      int // so far
	crossings map[*crossing]bool
}

// crossing is a connection over the link.
type crossing struct {
	ends [2]*net.TCPConn // who connected, and whom to
	over chan struct{}
	once sync.Once
}

// end closes it; both ends see a reset if there is to be one.
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

// NewLink listens at an address of a host and leads to an address as it is seen from there; of us, if no host is given.
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

// Slow lets every byte travel for `delay`, and at most `rate` of them pass in a second each way; 0: as they come.
func (l *Link) Slow(delay time.Duration, rate int64) {
	l.change(func() { l.delay, l.rate = delay, rate })
}

// Silence makes the link half open: connections stand, new ones are taken, and nothing passes these ways any
// more, no end of a connection either, until Heal. What was on its way stays there.
func (l *Link) Silence(ways ...Direction) {
	l.change(func() {
		for _, way := range ways {
			l.silent[way] = true
		}
	})
}

// Refuse resets every new connection, until Heal.
func (l *Link) Refuse() { l.change(func() { l.refusing = true }) }

// Heal ends what Silence and Refuse began. What was held passes, late.
func (l *Link) Heal() {
	l.change(func() { l.silent, l.refusing = [2]bool{}, false })
}

// Cut resets every connection. New ones are taken.
func (l *Link) Cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cutNow()
}

// CutAfter cuts when so many more bytes have gone up; `done` is closed then.
func (l *Link) CutAfter(bytes int64) (done <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cutAt, l.cut = l.passed[Up]+bytes, make(chan struct{})
	return l.cut
}

// Passed tells how many bytes have gone this way.
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
	if l.refusing || l.closed || l.cuts != cuts {
		c.end(true)
	}
	l.mutex.Unlock()
	var ways sync.WaitGroup
	for _, way := range []Direction{Up, Down} {
		pieces := make(chan piece, linkPieces)
		ways.Add(2)
		go func() { defer ways.Done(); l.take(c, way, pieces) }()
		go func() { defer ways.Done(); l.give(c, way, pieces) }()
	}
	ways.Wait()
	c.end(false)
	l.mutex.Lock()
	delete(l.crossings, c)
	l.mutex.Unlock()
}

// piece is what travels together: bytes, or the end of what is sent.
type piece struct {
	bytes []byte
	reset bool // that end was none in peace
	due   time.Time
}

// take reads what is sent one way. With all pieces on their way it waits, and so does the sender.
func (l *Link) take(c *crossing, way Direction, pieces chan<- piece) {
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

// give writes it at the other end when its time has come.
func (l *Link) give(c *crossing, way Direction, pieces <-chan piece) {
	other := c.ends[1-way]
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
		if _, err := other.Write(p.bytes); err != nil {
			// That end is gone, and whoever still sends learns it, if the way back is open.
			if l.await(c, 1-way, piece{}) {
				c.end(true)
			}
			return
		}
		l.count(way, len(p.bytes))
	}
}

// await waits until a piece may pass; false: it never will.
func (l *Link) await(c *crossing, way Direction, p piece) bool {
	for {
		l.mutex.Lock()
		silent, changed, now := l.silent[way], l.changed, time.Now()
		due := p.due
		if l.free[way].After(due) {
			due = l.free[way]
		}
		passes := !silent && !due.After(now)
		if passes && l.rate > 0 {
			l.free[way] = now.Add(time.Duration(len(p.bytes)) * time.Second / time.Duration(l.rate))
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
