package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
	"muster.example/testing/limits/table"
)

// limitsWalk is what the rows of the table name as their test if a scenario below exhausts them.
const limitsWalk = "testing/e2e/limits_walk_test.go:TestLimitsAreExhaustedOverTheWire"

const gatewayListener = "gateway" // of REST

const (
	measuredCalls = 300
	latencyFloor  = 100 * time.Millisecond // of 1 % of the calls, while other tests use the processors
	walkMemory    = 512 << 20              // of each service
	walkPlugins   = 98                     // of one run: more than it may have uploads
	walkUploads   = 190                    // a node may have half of them
)

// scenario exhausts one limit with one credential, or none, and returns the refusal: its reason, or a part of what the row
// says.
type scenario struct {
	service string // whose other client measures its latency
	exhaust func(w *limited) string
	last    bool                    // what it fills stays full
	cannot  func(w *limited) string // why it cannot run on this machine; nil: it can
}

// limited is a fleet with low limits, and its attacker.
type limited struct {
	t       *testing.T
	fleet   *fleet.Fleet
	callers *rpcCallers
	n1      *node
	node    *fleet.Operator // its access
	spooler *fleet.Operator // n3's access, which is attached to walkRelay
	forger  *forgingRelay
	run     string        // plugins p0, p1 and so on, on n1
	wide    string        // plugin logs on n1 and m0 to m29
	second  string        // plugins r0 to r4, on n1
	large   func() string // a run with many nodes
	ctx     context.Context
	done    chan struct{} // closed
}

func newLimited(t *testing.T) *limited {
	t.Helper()
	t.Setenv("GOMEMLIMIT", "384MiB") // of the gateway: unread snapshots are not followed by as much garbage
	f := up(t)
	for service, values := range map[string]map[string]string{
		"aggregator": {"limits.uploads": fmt.Sprint(walkUploads), "limits.result_bytes": "1048576", "limits.identity_disk_percent": "1"},
		"status":     {"heartbeats.max_senders": "20", "heartbeats.first_within": "1s"},
		"relay":      {"jobs.max_running": "2", "shares.max_files": "8", "shares.quota": "1MiB", "shares.max_size": "1536KiB"},
		"gateway":    {"limits.result_bytes": "2MiB", "limits.connections_per_identity": "24"},
	} {
		check(t, f.Configure(service, values))
	}
	var plugins, further, nodes []string
	for i := range walkPlugins {
		plugins = append(plugins, sidecarPlugin(fmt.Sprintf("p%d", i), "DaemonSet"))
	}
	for i := range 5 {
		further = append(further, sidecarPlugin(fmt.Sprintf("r%d", i), "DaemonSet"))
	}
	for i := range 30 {
		nodes = append(nodes, fmt.Sprintf("m%d", i))
	}
	n1 := attached(t, f, "n1")
	attached(t, f, "n2")
	w := &limited{t: t, fleet: f, n1: n1, node: n1.identity(t), forger: newForgingRelay(t, f, "r9"), run: run(t, f, plugins, "n1"),
		wide: run(t, f, []string{sidecarPlugin("logs", "DaemonSet")}, append(nodes, "n1")...), second: run(t, f, further, "n1")}
	w.callers, w.done = newCallers(t, f, w.wide), make(chan struct{})
	w.callers.listeners[gatewayListener] = must(url.Parse(w.callers.operator.Gateway[0]))(t).Host
	close(w.done)
	w.large = sync.OnceValue(w.createLarge)
	w.startWalkRelay()
	return w
}

// dial connects a role to a listener. The role "" has no certificate.
func (w *limited) dial(listener, role string, options ...grpc.DialOption) *grpc.ClientConn {
	w.t.Helper()
	chain, key := "", ""
	if role != "" {
		chain, key = w.callers.issue(w.t, role)
	}
	connection := must(w.callers.operator.Dial(w.callers.listeners[listener], chain, key, options...))(w.t)
	w.t.Cleanup(func() { connection.Close() })
	return connection
}

// dialNode connects n1 to a listener.
func (w *limited) dialNode(listener string) *grpc.ClientConn {
	w.t.Helper()
	connection := must(w.node.Dial(w.callers.listeners[listener], w.node.Certificate, w.node.Key))(w.t)
	w.t.Cleanup(func() { connection.Close() })
	return connection
}

// others returns one call of another client for each service.
func (w *limited) others() map[string]func(ctx context.Context) error {
	o := w.callers.operator
	dial := func(listener string) *grpc.ClientConn {
		connection := must(o.Dial(w.callers.listeners[listener], o.Certificate, o.Key))(w.t)
		w.t.Cleanup(func() { connection.Close() })
		return connection
	}
	runs, statuses := musterv1.NewRunServiceClient(dial(aggregatorListener)), musterv1.NewStatusServiceClient(dial(statusListener))
	jobs, spooling := musterv1.NewJobServiceClient(dial(relayListener)), dial(walkRelay)
	templates := musterv1.NewTemplateServiceClient(dial(jobsListener))
	client := must(o.HTTP())(w.t)
	return map[string]func(ctx context.Context) error{
		fleet.Aggregator: func(ctx context.Context) error {
			_, err := runs.GetRun(ctx, &musterv1.GetRunRequest{Run: w.wide})
			return err
		},
		fleet.Status: func(ctx context.Context) error {
			_, err := statuses.GetStatus(ctx, &musterv1.GetStatusRequest{Run: w.wide, PageSize: 10})
			return err
		},
		fleet.Relay: func(ctx context.Context) error {
			_, err := jobs.ListJobs(ctx, &musterv1.ListJobsRequest{})
			return err
		},
		fleet.Jobs: func(ctx context.Context) error {
			_, err := templates.ListTemplates(ctx, &musterv1.ListTemplatesRequest{PageSize: 10})
			return err
		},
		walkRelay: func(ctx context.Context) error {
			return spooling.Invoke(ctx, "/grpc.health.v1.Health/Check", &[]byte{}, &[]byte{}, grpc.ForceCodec(rawCodec{}))
		},
		fleet.Gateway: func(ctx context.Context) error {
			request := must(http.NewRequestWithContext(ctx, "GET", o.Gateway[0]+"/api/v1/runs/"+w.wide, nil))(w.t)
			response, err := client.Do(request)
			if err == nil {
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					err = fmt.Errorf("answered %s", response.Status)
				}
			}
			return err
		},
	}
}

// latency calls until `done`, and at least measuredCalls times; it returns the time that 1 % of the calls exceed.
func latency(t *testing.T, call func(ctx context.Context) error, done <-chan struct{}) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var times []time.Duration
	for {
		begin := time.Now()
		if err := call(ctx); err != nil {
			t.Errorf("another client: %v", err)
			return 0
		}
		times = append(times, time.Since(begin))
		select {
		case <-done:
			if len(times) >= measuredCalls {
				slices.Sort(times)
				return times[len(times)*99/100]
			}
		default:
		}
	}
}

// fits reports whether a row promises this refusal.
func fits(row table.Limit, refusal string) bool {
	if refusal == "" {
		return false
	}
	return row.Reason == refusal || row.Reason == "" && strings.Contains(row.Then+row.Value, refusal)
}

// refusalOf is the reason of an error, or the name of its code as in the rows.
func refusalOf(err error) string {
	var refused httpRefusal
	if errors.As(err, &refused) {
		return string(refused)
	}
	if why := reasonOf(err); why != "" && why != "-" && why != "gRPC" {
		return why
	}
	return map[codes.Code]string{codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.Unavailable: "connection closed"}[status.Code(err)]
}

// rowsOfWalk returns the rows that name this test, in the order of their scenarios.
func rowsOfWalk(sheets []*table.Sheet) (rows []table.Limit) {
	for _, sheet := range sheets {
		for _, row := range sheet.Limits {
			if row.Guard == limitsWalk {
				rows = append(rows, row)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b table.Limit) int {
		return map[bool]int{true: 1}[scenarios[a.Bounds].last] - map[bool]int{true: 1}[scenarios[b.Bounds].last]
	})
	return rows
}

// Each limit of the table that a client can exceed over the network is exceeded with one credential, or none. The refusal is that
// of the row; another client's latency stays below twice that of an idle fleet, and the services stay small. The other rows
// name their tests: a row with neither fails, and so does a scenario without a row.
//
// It is not parallel, because it measures latencies.
func TestLimitsAreExhaustedOverTheWire(t *testing.T) {
	sheets := must(table.Read("../.."))(t)
	w := newLimited(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w.ctx = ctx
	before := services(t, w.fleet)
	idle, others := map[string]time.Duration{}, w.others()
	for name, call := range others {
		until(t, name+" answers", func() bool { return call(ctx) == nil })
		idle[name] = latency(t, call, w.done)
	}
	slow := w.startSlow()
	names := map[string]bool{}
	for _, row := range rowsOfWalk(sheets) {
		names[row.Bounds] = true
		if s, found := scenarios[row.Bounds]; found {
			t.Run(row.Bounds, func(t *testing.T) {
				if s.cannot != nil {
					if why := s.cannot(w); why != "" {
						t.Skip(why)
					}
				}
				w.exceed(t, row, s, others[s.service], idle[s.service])
			})
		} else if slow[row.Bounds] == nil {
			t.Errorf("no scenario for %q", row.Bounds)
		}
	}
	for _, row := range rowsOfWalk(sheets) {
		if ended := slow[row.Bounds]; ended != nil {
			if refusal := <-ended; !fits(row, refusal) {
				t.Errorf("%s: refused with %q, want %s %s", row.Bounds, refusal, row.Reason, row.Then)
			}
		}
	}
	for name := range scenarios {
		if !names[name] {
			t.Errorf("no row of the table has the limit %q and this test", name)
		}
	}
	for name, now := range services(t, w.fleet) {
		if peak := peakMemory(now); peak > walkMemory || now.PID != before[name].PID {
			t.Errorf("%s took %d MiB; process %d, %d before", name, peak>>20, now.PID, before[name].PID)
		}
	}
}

// exceed runs a scenario while another client measures. If the latency is too long, both are measured once more: the machine
// may have become slower.
func (w *limited) exceed(t *testing.T, row table.Limit, s scenario, other func(ctx context.Context) error, idle time.Duration) {
	for try := range 2 {
		if try == 1 {
			idle = max(idle, latency(t, other, w.done))
		}
		var refusal string
		ctx, cancel := context.WithCancel(w.ctx)
		ended := make(chan struct{})
		attacker := *w
		attacker.ctx, attacker.t = ctx, t
		var working sync.WaitGroup
		working.Go(func() {
			defer close(ended)
			refusal = s.exhaust(&attacker)
		})
		measured := latency(t, other, ended)
		working.Wait()
		cancel() // what the attacker holds
		if !fits(row, refusal) {
			t.Errorf("refused with %q, want %s %s", refusal, row.Reason, row.Then)
		}
		t.Logf("%s: 1 %% of the calls take more than %v, %v when idle", s.service, measured, idle)
		if measured <= max(2*idle, latencyFloor) {
			return
		}
		if try == 1 {
			t.Errorf("1 %% of the calls of another client take more than %v, %v when idle", measured, idle)
		}
	}
}
