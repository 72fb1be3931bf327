package fleet

import (
	_ "embed" // the script
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed debian_image.sh
var imageScript string

// PushRemoteNode builds the image of the template type remote-node, which installs this program on nodes, pushes it, and
// returns its reference by digest. Its base has packages of this machine, as the network of the tests has no mirror of
// Debian.
func (d *Docker) PushRemoteNode(root, program string) (string, error) {
	base, reference := d.Registry+"/base", d.Registry+"/types/remote-node"
	folder, err := os.MkdirTemp(d.folder, "base")
	if err != nil {
		return "", err
	}
	script := exec.Command("/bin/sh", "-s", folder, "ansible-core", "openssh-client")
	script.Stdin = strings.NewReader(imageScript)
	if _, err := run(script); err != nil {
		return "", err
	}
	if _, err := d.Run("import", filepath.Join(folder, "image.tar"), base); err != nil {
		return "", err
	}
	build := exec.Command(filepath.Join(root, "deploy/ansible/remote-node/build"), program, reference, "--build-arg", "BASE="+base, "--network", "none")
	build.Env = []string{"DOCKER_HOST=unix://" + d.Socket}
	if _, err := run(build); err != nil {
		return "", fmt.Errorf("the image of the type remote-node: %w", err)
	}
	return d.push(reference)
}
