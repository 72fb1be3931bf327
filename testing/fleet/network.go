package fleet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The network of a test that RunInOwnNetwork started. It belongs to the test: all its addresses are free.
const (
	inOwnNetwork = "FLEET_IN_OWN_NETWORK"
	networkHere  = "10.99.%d.1"
	networkThere = "10.99.%d.2"
)

// InOwnNetwork reports whether this process is in a network namespace of RunInOwnNetwork.
func InOwnNetwork() bool { return os.Getenv(inOwnNetwork) != "" }

// RunInOwnNetwork runs one test of this program again, in a network namespace that ends with it, and returns how it
// ended. It requires root, or user namespaces.
func RunInOwnNetwork(test string) error {
	flags := []string{"--net", "--kill-child"}
	if os.Getuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	flags = append(flags, "--fork", "/bin/sh", "-c", `ip link set lo up && exec "$@"`, "network", os.Args[0],
		"-test.v", "-test.run=^"+test+"$", "-test.timeout=10m")
	command := exec.Command("unshare", flags...)
	command.Env = append(os.Environ(), inOwnNetwork+"=1")
	output, err := command.CombinedOutput()
	if err == nil && !strings.Contains(string(output), "--- PASS: "+test) {
		err = errors.New("the test did not pass")
	}
	if err != nil {
		return fmt.Errorf("%s in its own network: %w\n%s", test, err, output)
	}
	return nil
}

// Host is a separate machine in the network: a namespace, connected to ours by a cable.
type Host struct {
	Address string // our address, or that of the host it is behind, as seen from the host

	namespace string
	alive     io.Closer // closing it ends the process that holds the namespace
	holder    *exec.Cmd
	here      string // the other end of the cable
}

var hosts atomic.Int32

// NewHost creates a host connected to us. It requires the test's own network.
func NewHost() (*Host, error) { return newHost("/proc/self/ns/net") }

// NewHostBehind creates a host that is connected only to h.
func (h *Host) NewHostBehind() (*Host, error) { return newHost(h.namespace) }

func newHost(behind string) (*Host, error) {
	if !InOwnNetwork() {
		return nil, errors.New("a host requires the test's own network")
	}
	number := hosts.Add(1)
	h := &Host{Address: fmt.Sprintf(networkHere, number), here: fmt.Sprintf("cable%d", number)}
	h.holder = exec.Command("unshare", "--net", "/bin/sh", "-c", "echo ready; exec cat")
	alive, err := h.holder.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, err := h.holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.holder.Start(); err != nil {
		return nil, err
	}
	h.alive, h.namespace = alive, fmt.Sprintf("/proc/%d/ns/net", h.holder.Process.Pid)
	if _, err := ready.Read(make([]byte, 6)); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	there := fmt.Sprintf(networkThere, number)
	other := "nsenter --net=" + behind + " "
	for _, step := range []string{
		fmt.Sprintf("%sip link add %s type veth peer name cable netns %d", other, h.here, h.holder.Process.Pid),
		fmt.Sprintf("%sip address add %s/24 dev %s", other, h.Address, h.here),
		other + "ip link set " + h.here + " up",
		h.in("ip address add " + there + "/24 dev cable"),
		h.in("ip link set lo up"),
		h.in("ip link set cable up"),
	} {
		if err := do(step); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	return h, nil
}

// Cut disconnects the cable.
func (h *Host) Cut() error { return do(h.in("ip link set cable down")) }

// Mend reconnects the cable.
func (h *Host) Mend() error { return do(h.in("ip link set cable up")) }

// Close ends the host; its processes continue without a network.
func (h *Host) Close() error { return errors.Join(h.alive.Close(), h.holder.Wait()) }

// Do runs f on a thread of this host: f listens and dials in its network. Goroutines that f starts do not.
func (h *Host) Do(f func() error) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		namespace, err := os.Open(h.namespace)
		if err == nil {
			err = errors.Join(unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNET), namespace.Close())
		}
		if err == nil {
			err = f()
		}
		ended <- err
	}()
	return <-ended
}

func (h *Host) in(step string) string { return "nsenter --net=" + h.namespace + " " + step }

func do(step string) error {
	words := strings.Fields(step)
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", step, err, out)
	}
	return nil
}
