package browser

import (
	"os/exec"
	"path/filepath"
)

// rejectedDocumentIsShown stores a type that this Muster rejects, as an earlier one may have done, and templates of it.
func rejectedDocumentIsShown(d deploying, p *page) {
	p.t.Helper()
	d.muster("down")
	out, err := exec.Command("sqlite3", filepath.Join(d.Home, "jobs/jobs.db"), `
		INSERT INTO documents SELECT 0, 'early', rank, version, '{"parameters":[]}', created_by, 1 FROM documents WHERE kind = 0 AND name = 'greet';
		INSERT INTO documents SELECT 1, 'late', rank, version, replace(document, 'greet@1.0.0', 'early@1.0.0'), created_by, 1
			FROM documents WHERE kind = 1 AND name = 'hi';`).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	if err := d.Up(); err != nil {
		p.t.Fatal(err)
	}
	p.signIn(d.Fleet)
	p.visit("#/templates")
	p.untilShown("[aria-labelledby=types] tr[data-name=early]")
	p.untilShown("[aria-labelledby=types] tr[data-name=greet]")
	for _, path := range []string{"types/early@1.0.0", "templates/late@1.4.0"} {
		p.visit("#/" + path)
		p.untilText(".notice", "The document is not valid")
		if script[bool](p, `document.querySelector("[aria-labelledby=deploy]") !== null`) {
			p.t.Errorf("%s has a form", path)
		}
	}
}
