package browser

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"muster.example/testing/fleet"
)

// terminalPage shows a window with the output of a command.
const terminalPage = `<div id="window" style="display: inline-block; padding: 14px 18px; background: #16181d; color: #d8dbe2;
	font: 13px/1.35 'DejaVu Sans Mono', monospace"><pre style="margin: 0; font: inherit"><span style="color: #8fb573">$</span> %s
%s</pre></div>`

// terminalShot takes a screenshot of what a command writes to a terminal of this size.
func terminalShot(t *testing.T, f *fleet.Fleet, name string, rows, columns uint16, arguments ...string) {
	t.Helper()
	text := inTerminal(t, f, rows, columns, arguments...)
	p := newPage(t)
	p.open("about:blank")
	script[string](p, fmt.Sprintf("document.body.style.margin = 0; document.body.innerHTML = %q",
		fmt.Sprintf(terminalPage, html.EscapeString("muster "+strings.Join(arguments, " ")), html.EscapeString(text))))
	const side = `Math.ceil(document.querySelector("#window").getBoundingClientRect().%s)`
	p.size(script[int64](p, fmt.Sprintf(side, "width")), script[int64](p, fmt.Sprintf(side, "height")))
	p.fits()
	p.shot(name)
}

var color = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// inTerminal returns what a command writes to a terminal, without colours: plain text, in lines that fit.
func inTerminal(t *testing.T, f *fleet.Fleet, rows, columns uint16, arguments ...string) string {
	t.Helper()
	command := f.Command(t.Context(), arguments...)
	file, err := pty.StartWithSize(command, &pty.Winsize{Rows: rows, Cols: columns})
	check(t, err)
	defer file.Close()
	var all strings.Builder
	for buffer := make([]byte, 4096); ; {
		n, err := file.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			break // the program has ended
		}
	}
	_ = command.Wait() // the exit code is the run's state
	text := strings.TrimRight(strings.ReplaceAll(color.ReplaceAllString(all.String(), ""), "\r\n", "\n"), "\n")
	for line := range strings.Lines(text) {
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r < ' ' }) || len([]rune(line)) > int(columns)+1 {
			t.Errorf("a line is too long, or not plain: %q", line)
		}
	}
	return text
}
