// Package browser tests the dashboard in a headless Chromium against a real fleet. Set MUSTER_BIN as for the other
// end-to-end tests; -update writes the images of the documents.
package browser

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"muster.example/testing/fleet"
)

var update = flag.Bool("update", false, "write the images in docs/images")

// soon bounds waits for a condition: a node is late after two heartbeats of 10 s.
const soon = 90 * time.Second

func TestMain(m *testing.M) {
	end, err := fleet.KeepTemporaryFiles()
	code := 1
	if err == nil {
		code = m.Run()
	}
	if end != nil {
		err = errors.Join(err, end())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// page is a tab in a separate browser. Uncaught errors of scripts and violations of the page's policy fail the test.
type page struct {
	t   *testing.T
	ctx context.Context
}

// newPage returns a page that accepts any server certificate.
func newPage(t *testing.T) *page {
	t.Helper()
	return newPageOf(t, chromedp.IgnoreCertErrors)
}

func newPageOf(t *testing.T, more ...chromedp.ExecAllocatorOption) *page {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: install the packages in deploy/packages", err)
	}
	temporary, err := os.MkdirTemp("", "browser") // Chromium leaves files behind when it ends
	check(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Env("TMPDIR="+temporary))
	allocator, closeBrowser := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	ctx, closeTab := chromedp.NewContext(allocator)
	check(t, chromedp.Do(ctx)) // starts the browser; a time limit of this call would end it
	p := &page{t: t, ctx: ctx}
	var listening sync.WaitGroup
	messages := chromedp.Console(ctx)
	listening.Go(func() { p.listen(messages) })
	t.Cleanup(func() {
		closeTab()
		closeBrowser()
		listening.Wait()
		check(t, fleet.Until(soon, "the browser has ended and its files are removed", func() bool { return os.RemoveAll(temporary) == nil }))
	})
	p.size(1280, 900)
	return p
}

func (p *page) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for message, err := range messages {
		if err != nil {
			return
		}
		if message.IsException() || message.Source == "security" || strings.Contains(message.Text, "Content Security Policy") {
			p.t.Errorf("the browser's console: %v", message)
		}
	}
}

// act runs an action within a time limit, and returns its result.
func act[T any](p *page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, soon)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	check(p.t, err)
	return value
}

func (p *page) size(width, height int64) {
	p.t.Helper()
	act(p, chromedp.EmulateViewport(width, height))
}

func (p *page) dark(on bool) {
	p.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[on]
	act(p, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	})
}

func (p *page) open(address string) {
	p.t.Helper()
	act(p, chromedp.Navigate(address))
}

// visit opens one of the dashboard's pages.
func (p *page) visit(route string) {
	p.t.Helper()
	script[string](p, fmt.Sprintf("location.hash = %q", route))
}

func (p *page) click(selector string) {
	p.t.Helper()
	act(p, chromedp.Click(chromedp.CSS(selector)))
}

// typed sends keys to an element; "" is the focused element.
func (p *page) typed(selector, keys string) {
	p.t.Helper()
	if selector != "" {
		act(p, chromedp.Focus(chromedp.CSS(selector)))
	}
	act(p, chromedp.KeyEvent(keys))
}

// script evaluates an expression.
func script[T any](p *page, expression string) T {
	p.t.Helper()
	return act(p, chromedp.Evaluate[T](expression))
}

// until waits for an expression to be true.
func (p *page) until(what, expression string) {
	p.t.Helper()
	err := fleet.Until(soon, what, func() bool { return script[bool](p, "Boolean("+expression+")") })
	if err != nil {
		p.t.Fatalf("%v; the page shows:\n%s", err, script[string](p, "document.body.innerText"))
	}
}

// untilShown waits for an element.
func (p *page) untilShown(selector string) {
	p.t.Helper()
	p.until(selector+" exists", fmt.Sprintf("document.querySelector(%q)", selector))
}

// text returns the visible text of an element.
func (p *page) text(selector string) string {
	p.t.Helper()
	return script[string](p, fmt.Sprintf("(document.querySelector(%q) || {innerText: ''}).innerText", selector))
}

// fits fails if the page has to be scrolled horizontally. The grid is drawn again after a change of the size.
func (p *page) fits() {
	p.t.Helper()
	narrow := `document.documentElement.scrollWidth <= document.documentElement.clientWidth`
	if fleet.Until(soon, "the page is not too wide", func() bool { return script[bool](p, narrow) }) != nil {
		p.t.Fatalf("the page is too wide, by:\n%s", script[string](p, `[...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth)
			.map((e) => e.outerHTML.slice(0, 200)).join("\n")`))
	}
}

// shot takes a screenshot for the documents; with -update it is written there.
func (p *page) shot(name string) {
	p.t.Helper()
	picture := act(p, chromedp.CaptureScreenshot())
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
		p.t.Errorf("screenshot %s: %v", name, err)
	}
	if *update {
		check(p.t, os.WriteFile(filepath.Join("../../../docs/images", name+".png"), picture, 0o644))
	}
}

// enter sets the text of an input or the choice of a list, as a person does.
func (p *page) enter(id, value string) {
	p.t.Helper()
	p.untilShown("#" + id)
	script[bool](p, fmt.Sprintf(`(() => {
		const input = document.getElementById(%q);
		Object.getOwnPropertyDescriptor(Object.getPrototypeOf(input), "value").set.call(input, %q);
		input.dispatchEvent(new Event("input", {bubbles: true}));
		input.dispatchEvent(new Event("change", {bubbles: true}));
		return input.value === %[2]q;
	})()`, id, value))
}

// untilText waits until the visible text of an element, with single spaces, contains another one.
func (p *page) untilText(selector, want string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s shows %q", selector, want), fmt.Sprintf(`document.querySelector(%q)?.innerText.replace(/\s+/g, " ").includes(%q)`, selector, want))
}

// has fails unless the visible text of an element, with single spaces, contains all of the others.
func (p *page) has(selector string, want ...string) {
	p.t.Helper()
	text := strings.Join(strings.Fields(p.text(selector)), " ")
	for _, each := range want {
		if !strings.Contains(text, each) {
			p.t.Errorf("%s shows no %q: %q", selector, each, text)
		}
	}
}

// narrow fails unless the page fits the widths of a small phone and of a narrow window.
func (p *page) narrow() {
	p.t.Helper()
	for _, width := range []int64{320, 480} {
		p.size(width, 640)
		p.fits()
	}
	p.size(1280, 900)
}
