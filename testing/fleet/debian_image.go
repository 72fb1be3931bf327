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
	if err := d.importPackages(base, "ansible-core", "openssh-client"); err != nil {
		return "", err
	}
	build := exec.Command(filepath.Join(root, "deploy/ansible/remote-node/build"), program, reference, "--build-arg", "BASE="+base, "--network", "none")
	build.Env = []string{"DOCKER_HOST=unix://" + d.Socket}
	if _, err := run(build); err != nil {
		return "", fmt.Errorf("the image of the type remote-node: %w", err)
	}
	return d.push(reference)
}

// PushType builds the image of a template type of deploy/types in the same way.
func (d *Docker) PushType(root, name string, packages ...string) (string, error) {
	base, reference := d.Registry+"/base-"+name, d.Registry+"/types/"+name
	if err := d.importPackages(base, packages...); err != nil {
		return "", err
	}
	build := exec.Command(filepath.Join(root, "deploy/types/build"), name, reference, "--build-arg", "BASE="+base, "--build-arg", "PACKAGES=",
		"--network", "none")
	build.Env = []string{"DOCKER_HOST=unix://" + d.Socket}
	if _, err := run(build); err != nil {
		return "", fmt.Errorf("the image of the type %s: %w", name, err)
	}
	return d.push(reference)
}

// importPackages makes an image of packages of this machine, with what they depend on.
func (d *Docker) importPackages(reference string, packages ...string) error {
	folder, err := os.MkdirTemp(d.folder, "base")
	if err != nil {
		return err
	}
	script := exec.Command("/bin/sh", append([]string{"-s", folder}, packages...)...)
	script.Stdin = strings.NewReader(imageScript)
	if _, err := run(script); err != nil {
		return err
	}
	_, err = d.Run("import", filepath.Join(folder, "image.tar"), reference)
	return err
}
