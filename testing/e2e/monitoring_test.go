package e2e

import (
	"context"
	"crypto/tls"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/proto/gen/go/muster/v1"
	"muster.example/testing/fleet"
)

var (
	monitoredServices = []string{"aggregator", "status", "gateway", "relay", "jobs"}
	// Labels with few values; a label never has values that peers choose (a node, a run, an address).
	boundedLabels = []string{"code", "direction", "listener", "method", "outcome", "presence", "reason", "result", "route", "state"}
)

// Every query of the dashboard and the alerts uses metrics and labels that the services have; docs/operating.md
// explains exactly those; no label or value comes from a peer.
func TestDashboardAndAlertsUseExistingMetrics(t *testing.T) {
	t.Parallel()
	families := familiesOfALivelyFleet(t)
	jobs := jobsOfScrapeConfig(t)
	queries := append(dashboardQueries(t), alertQueries(t)...)
	for _, q := range queries {
		for _, fault := range faultsOf(q, families, jobs) {
			t.Errorf("%s: %s\n\t%s", q.where, fault, q.text)
		}
	}

	guide := string(must(os.ReadFile("../../docs/operating.md"))(t))
	explained := map[string]bool{}
	for _, name := range regexp.MustCompile("`(muster_\\w+)`").FindAllStringSubmatch(guide, -1) {
		if strings.HasPrefix(name[1], "muster_agent") {
			continue // the role of Ansible and its variables
		}
		explained[name[1]] = true
		if families[name[1]] == nil {
			t.Errorf("docs/operating.md explains the unknown metric %s", name[1])
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "muster_") && !explained[name] {
			t.Errorf("docs/operating.md does not explain %s", name)
		}
	}
}

// familiesOfALivelyFleet returns the metrics of all services after each kind of event has occurred once: a metric with
// labels exists from then on.
func familiesOfALivelyFleet(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	f := up(t)
	const node = "node-that-no-label-names"
	const plugin = "plugin-that-no-label-names"
	id := run(t, f, []string{untilReleased(f, plugin)}, node, "n2")
	credential := must(f.Export(id, plugin, node))(t)
	startAgent(t, f, nil, id, plugin, node)
	until(t, "the agent's heartbeats are counted", func() bool {
		return counted(t, f, "status", `muster_pending_pairs{reason="REASON_RUNNING"}`) == 1 &&
			counted(t, f, "status", `muster_senders{presence="PRESENCE_ONLINE"}`) == 1
	})
	if code, err := put(t, must(f.Export(id, plugin, "n2"))(t), "n2", "by an old client"); err != nil {
		t.Fatalf("a delivery by an old client: %d, %v", code, err)
	}
	refuseEachWay(t, f, credential)
	families := map[string]*dto.MetricFamily{}
	for _, service := range monitoredServices {
		text := must(metrics(f, service))(t)
		for _, secret := range []string{id, node, plugin} {
			if strings.Contains(text, secret) {
				t.Errorf("the metrics of %s contain %s", service, secret)
			}
		}
		readFamilies(t, text, families)
	}
	checkFamilies(t, families)
	return families
}

// refuseEachWay makes requests that every listener refuses: without a certificate, and with one without the permission.
func refuseEachWay(t *testing.T, f *fleet.Fleet, credential *fleet.Credential) {
	t.Helper()
	addresses := slices.Concat(credential.GRPCTargets, credential.StatusTargets,
		[]string{strings.TrimPrefix(credential.AggregatorURL, "https://")})
	for _, address := range addresses {
		address, _, _ = strings.Cut(address, "/")
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err == nil { // TLS 1.3: the refusal follows the client's part of the handshake; the counters show it
			_, _ = connection.Read(make([]byte, 1))
			connection.Close()
		}
	}
	connection := must(credential.GRPC())(t)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	_, err := musterv1.NewRunServiceClient(connection).ListRuns(ctx, &musterv1.ListRunsRequest{})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a node that lists the runs: %v", err)
	}
	until(t, "the refusals are counted", func() bool {
		return refusals(t, f) > 0 && strings.Contains(must(metrics(f, "aggregator"))(t), "muster_rpc_refused_total{") &&
			strings.Contains(must(metrics(f, "aggregator"))(t), "muster_rpc_refused_handshakes_total{")
	})
}

// readFamilies adds a service's metrics.
func readFamilies(t *testing.T, text string, families map[string]*dto.MetricFamily) {
	t.Helper()
	reader := expfmt.NewTextParser(model.LegacyValidation)
	for name, family := range must(reader.TextToMetricFamilies(strings.NewReader(text)))(t) {
		if known := families[name]; known != nil {
			if known.GetType() != family.GetType() {
				t.Errorf("%s has two types", name)
			}
			known.Metric = append(known.Metric, family.Metric...)
			continue
		}
		families[name] = family
	}
}

func checkFamilies(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	for name, family := range families {
		if family.GetHelp() == "" || family.GetType() == dto.MetricType_UNTYPED {
			t.Errorf("%s has no help, or no type", name)
		}
		if strings.HasSuffix(name, "_total") != (family.GetType() == dto.MetricType_COUNTER) && strings.HasPrefix(name, "muster_") {
			t.Errorf("%s is a %s: exactly the counters end in _total", name, family.GetType())
		}
		for _, label := range labelsOf(family) {
			if strings.HasPrefix(name, "muster_") && !slices.Contains(boundedLabels, label) {
				t.Errorf("%s has the label %s: add it to boundedLabels only if it has few values", name, label)
			}
		}
	}
}

func labelsOf(family *dto.MetricFamily) (names []string) {
	for _, metric := range family.Metric {
		for _, label := range metric.Label {
			names = append(names, label.GetName())
		}
	}
	return names
}

func hasValue(family *dto.MetricFamily, label, value string) bool {
	return slices.ContainsFunc(family.Metric, func(metric *dto.Metric) bool {
		return slices.ContainsFunc(metric.Label, func(l *dto.LabelPair) bool {
			return l.GetName() == label && l.GetValue() == value
		})
	})
}
