package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// terminal is a pseudo terminal with a program. It emulates a screen for the output of our program: text, \r, \n,
// cursor up, erase.
type terminal struct {
	file *os.File

	mu    sync.Mutex
	all   string
	ended chan struct{}
}

type screen struct {
	lines     []string
	row       int
	column    int
	hidden    bool
	frames    int // how often the cursor moved up for a redraw
	tooLong   int // the longest line since the last frame began
	unhandled string
}

var control = regexp.MustCompile(`^\x1b\[(\??)([0-9]*)([A-Za-z])`)

func (s *screen) write(text string) {
	for len(text) > 0 {
		if found := control.FindStringSubmatch(text); found != nil {
			s.obey(found[1], found[2], found[3])
			text = text[len(found[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		for s.row >= len(s.lines) {
			s.lines = append(s.lines, "")
		}
		switch r {
		case '\r':
			s.column = 0
		case '\n':
			s.row++
		default:
			line := []rune(s.lines[s.row])
			for len(line) <= s.column {
				line = append(line, ' ')
			}
			line[s.column] = r
			s.column++
			s.tooLong = max(s.tooLong, s.column)
			s.lines[s.row] = string(line)
		}
	}
}

func (s *screen) obey(private, number, command string) {
	count, _ := strconv.Atoi(number)
	switch private + command {
	case "A":
		s.row = max(s.row-count, 0)
		s.frames++
		s.tooLong = 0
	case "K":
		if s.row < len(s.lines) {
			s.lines[s.row] = string([]rune(s.lines[s.row])[:min(s.column, len([]rune(s.lines[s.row])))])
		}
	case "J":
		s.lines = s.lines[:min(s.row, len(s.lines))]
	case "?h", "?l":
		s.hidden = command == "l"
	default:
		s.unhandled = private + number + command
	}
}

func startInTerminal(t *testing.T, command *exec.Cmd, rows, columns uint16) *terminal {
	t.Helper()
	file := must(pty.StartWithSize(command, &pty.Winsize{Rows: rows, Cols: columns}))(t)
	term := &terminal{file: file, ended: make(chan struct{})}
	go func() {
		defer close(term.ended)
		buffer := make([]byte, 64<<10)
		for {
			n, err := file.Read(buffer)
			term.mu.Lock()
			term.all += string(buffer[:n])
			term.mu.Unlock()
			if err != nil {
				return // the program has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		file.Close()
		<-term.ended
		if t.Failed() {
			t.Logf("the terminal got %q", term.all)
		}
	})
	return term
}

// now returns the present screen.
func (term *terminal) now() screen {
	term.mu.Lock()
	defer term.mu.Unlock()
	var s screen
	s.write(term.all[:strings.LastIndex(term.all, "\n")+1] + trailing(term.all))
	return s
}

// trailing returns the text after the last newline, if it is complete.
func trailing(text string) string {
	rest := text[strings.LastIndex(text, "\n")+1:]
	if i := strings.LastIndex(rest, "\x1b"); i >= 0 && control.FindString(rest[i:]) == "" {
		return rest[:i]
	}
	return rest
}

func (s screen) text() string { return strings.Join(s.lines, "\n") }

// The watch redraws one picture in place, fits the window, and restores the terminal.
func TestWatchOnTerminalRedrawsInPlace(t *testing.T) {
	t.Parallel()
	f := up(t)
	run := run(t, f, []string{sidecarPlugin("logs", "DaemonSet"), sidecarPlugin("e2e", "Job")}, "n1", "n2")
	until(t, "the run is known", func() bool { _, err := f.Muster("status", run); return exitCode(err) == 7 })
	command := f.Command(t.Context(), "status", run, "--watch")
	term := startInTerminal(t, command, 30, 120)
	until(t, "the picture is shown", func() bool { s := term.now(); return strings.Contains(s.text(), "Run "+run) && s.hidden })

	credential := must(f.Export(run, "logs", "n1"))(t)
	check(t, submit(t, credential, run, "logs", "n1", "a result"))
	until(t, "the picture has changed in place", func() bool {
		s := term.now()
		return s.frames > 0 && strings.Contains(s.text(), "1 of 3 results")
	})
	if s := term.now(); strings.Count(s.text(), "Run "+run) != 1 || strings.Contains(s.text(), "0 of 3") || s.unhandled != "" {
		t.Errorf("more than one picture is on the screen, or a part of an older one (%q):\n%s", s.unhandled, s.text())
	}

	check(t, pty.Setsize(term.file, &pty.Winsize{Rows: 6, Cols: 40}))
	frames := term.now().frames
	until(t, "it is drawn for the smaller window", func() bool {
		s := term.now()
		return s.frames > frames+1 && s.tooLong > 0 && s.tooLong <= 40 && len(s.lines) <= 6
	})

	_, err := term.file.WriteString("\x03") // Ctrl-C, as a key
	check(t, err)
	until(t, "the program has ended", func() bool {
		select {
		case <-term.ended:
			return true
		default:
			return false
		}
	})
	_ = command.Wait()
	if code := command.ProcessState.ExitCode(); code != 130 {
		t.Errorf("Ctrl-C: exit code %d (%v), want 130", code, command.ProcessState.Sys().(syscall.WaitStatus))
	}
	s := term.now()
	if s.hidden || s.column != 0 || strings.Contains(s.text(), "^C") {
		t.Errorf("after Ctrl-C the cursor is hidden (%v) or in column %d; the screen:\n%s", s.hidden, s.column, s.text())
	}
}
