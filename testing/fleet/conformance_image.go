package fleet

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// PushConformance builds the image of the template type conformance, pushes it, and returns its reference by digest.
func (d *Docker) PushConformance(root string) (string, error) {
	reference := d.Registry + "/types/conformance"
	build := exec.Command(filepath.Join(root, "deploy/conformance/build"), reference, "--network", "none")
	build.Env = []string{"DOCKER_HOST=unix://" + d.Socket}
	if _, err := run(build); err != nil {
		return "", fmt.Errorf("the image of the type conformance: %w", err)
	}
	return d.push(reference)
}
