package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	musterv1 "muster.example/gateway/gen/muster/v1"
	"muster.example/testing/fleet"
)

const monitoringFolder = "../../deploy/monitoring"

var (
	monitoredServices = []string{"aggregator", "status", "gateway"}
	// Only what has few values may be a label: what peers choose (a node, a run, an address) never is.
	boundedLabels = []string{"code", "listener", "method", "presence", "reason", "result", "route", "state"}
	// Prometheus adds these to everything that it reads.
	targetLabels = []string{"instance", "job"}
	shownLabel   = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// query is PromQL as it stands in a file, with the labels that a text about its result shows.
type query struct{ where, text, shown string }

// Every query of the dashboard and the alerts asks for metrics and labels that the services really have;
// docs/operating.md explains exactly those; no label or value comes from a peer.
func TestDashboardAndAlertsAskForWhatTheServicesTell(t *testing.T) {
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
		explained[name[1]] = true
		if families[name[1]] == nil {
			t.Errorf("docs/operating.md explains %s, which no service has", name[1])
		}
	}
	for name := range families {
		if strings.HasPrefix(name, "muster_") && !explained[name] {
			t.Errorf("docs/operating.md does not explain %s", name)
		}
	}
}

// The check itself: each of these mistakes is found.
func TestWrongQueriesAreFound(t *testing.T) {
	text := "# HELP c_total x\n# TYPE c_total counter\nc_total{code=\"OK\"} 1\n# HELP g x\n# TYPE g gauge\ng{state=\"A\"} 1\n"
	families := map[string]*dto.MetricFamily{}
	readFamilies(t, text, families)
	for expression, says := range map[string]string{
		`sum(rate(c_total[5m]`:                     "parse error",
		`sum(rate(absent_total[5m]))`:              "no service has absent_total",
		`c_total{method="x"}`:                      "no label method",
		`sum by (method) (rate(c_total[5m]))`:      "no label method",
		`rate(g[5m])`:                              "g is no counter",
		`g{state="B"}`:                             "never B",
		`g{state=~"A|B"}`:                          "never B",
		`up{job="muster-other"}`:                   "never muster-other",
		`{state="A"}`:                              "names no metric",
		`sum without (code) (rate(c_total[5m]))`:   "",
		`sum by (job, code) (rate(c_total[5m]))`:   "",
		`g{state="A", job=~"muster-.*"} or up > 0`: "",
	} {
		faults := strings.Join(faultsOf(query{text: expression}, families, []string{"muster-status"}), "; ")
		if (says == "") != (faults == "") || !strings.Contains(faults, says) {
			t.Errorf("%s: got %q, want %q", expression, faults, says)
		}
	}
	shown := query{text: `sum by (code) (rate(c_total[5m]))`, shown: "{{ $labels.job }} {{code}}"}
	if faults := faultsOf(shown, families, nil); len(faults) != 1 || !strings.Contains(faults[0], "shows job") {
		t.Errorf("a label that an aggregation drops: %q", faults)
	}
}

// familiesOfALivelyFleet gives all that the services tell after each kind of thing has happened once: a metric with
// labels is there from the first on.
func familiesOfALivelyFleet(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	f := up(t)
	const node = "node-that-no-label-names"
	const plugin = "plugin-that-no-label-names"
	id := run(t, f, []string{untilReleased(f, plugin)}, node, "n2")
	credential := must(f.Export(id, plugin, node))(t)
	startAgent(t, f, nil, id, plugin, node)
	until(t, "the agent's heartbeats are counted", func() bool {
		return counted(t, f, "status", `muster_unfinished_pairs{reason="REASON_RUNNING"}`) == 1 &&
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
				t.Errorf("the metrics of %s name %s", service, secret)
			}
		}
		readFamilies(t, text, families)
	}
	checkFamilies(t, families)
	return families
}

// refuseEachWay is refused at every door: without a certificate, and with one that may not do this.
func refuseEachWay(t *testing.T, f *fleet.Fleet, credential *fleet.Credential) {
	t.Helper()
	addresses := slices.Concat(credential.GRPCTargets, credential.StatusTargets,
		[]string{strings.TrimPrefix(credential.AggregatorURL, "https://")})
	for _, address := range addresses {
		address, _, _ = strings.Cut(address, "/")
		connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err == nil { // TLS 1.3: the refusal comes after the client's part of the handshake; the counters show it
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
		t.Errorf("a node that asks for the runs: %v", err)
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
			t.Errorf("%s is a %s: counters, and they alone, end in _total", name, family.GetType())
		}
		for _, label := range labelsOf(family) {
			if strings.HasPrefix(name, "muster_") && !slices.Contains(boundedLabels, label) {
				t.Errorf("%s has the label %s: is it sure that its values are few? Then add it to boundedLabels", name, label)
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

// faultsOf tells what is wrong with a query.
func faultsOf(q query, families map[string]*dto.MetricFamily, jobs []string) (faults []string) {
	expression, err := parser.ParseExpr(strings.ReplaceAll(q.text, "$__rate_interval", "5m"))
	if err != nil {
		return []string{"parse error: " + err.Error()}
	}
	complain := func(format string, arguments ...any) { faults = append(faults, fmt.Sprintf(format, arguments...)) }
	parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			faults = append(faults, faultsOfSelector(n, path, families, jobs)...)
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				if !anyHas(n.Expr, label, families) {
					complain("no label %s", label)
				}
			}
		}
		return nil
	})
	kept, known := keptLabels(expression)
	for _, shown := range shownLabel.FindAllStringSubmatch(q.shown, -1) {
		label := shown[1]
		if label != "value" && (known && !slices.Contains(kept, label) || !known && !anyHas(expression, label, families)) {
			complain("the text shows %s, which the result has not", label)
		}
	}
	return faults
}

func faultsOfSelector(s *parser.VectorSelector, path []parser.Node, families map[string]*dto.MetricFamily, jobs []string) (faults []string) {
	if s.Name == "" {
		return []string{"a selector names no metric"}
	}
	family := families[s.Name]
	if family == nil && s.Name != "up" { // Prometheus makes `up`
		return []string{"no service has " + s.Name}
	}
	for _, node := range path {
		call, ok := node.(*parser.Call)
		if ok && slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name) && family.GetType() != dto.MetricType_COUNTER {
			faults = append(faults, s.Name+" is no counter")
		}
	}
	for _, matcher := range s.LabelMatchers {
		switch {
		case matcher.Name == labels.MetricName:
		case matcher.Name == "job":
			for _, value := range alternatives(matcher) {
				if !slices.Contains(jobs, value) {
					faults = append(faults, "job is never "+value)
				}
			}
		case !slices.Contains(labelsOf(family), matcher.Name):
			faults = append(faults, s.Name+" has no label "+matcher.Name)
		case matcher.Name != "code": // which codes have been answered until now says little
			for _, value := range alternatives(matcher) {
				if !hasValue(family, matcher.Name, value) {
					faults = append(faults, matcher.Name+" is never "+value)
				}
			}
		}
	}
	return faults
}

// alternatives are the values that a matcher names: A, or those of PREFIX_(A|B) and A|B; none of a wider pattern.
func alternatives(matcher *labels.Matcher) []string {
	if matcher.Type == labels.MatchEqual || matcher.Type == labels.MatchNotEqual {
		return []string{matcher.Value}
	}
	parts := regexp.MustCompile(`^([\w-]*)\(?([\w|-]+)\)?$`).FindStringSubmatch(matcher.Value)
	if parts == nil {
		return nil
	}
	if !strings.Contains(matcher.Value, "(") {
		return strings.Split(matcher.Value, "|")
	}
	values := strings.Split(parts[2], "|")
	for i := range values {
		values[i] = parts[1] + values[i]
	}
	return values
}

// anyHas tells whether some metric below has the label.
func anyHas(expression parser.Node, label string, families map[string]*dto.MetricFamily) (found bool) {
	if slices.Contains(targetLabels, label) {
		return true
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok && families[s.Name] != nil {
			found = found || slices.Contains(labelsOf(families[s.Name]), label)
		}
		return nil
	})
	return found
}

// keptLabels are the labels of a result, where they are known: below an aggregation, those that it is by.
func keptLabels(expression parser.Expr) (kept []string, known bool) {
	switch e := expression.(type) {
	case *parser.ParenExpr:
		return keptLabels(e.Expr)
	case *parser.BinaryExpr:
		if kept, known = keptLabels(e.LHS); known {
			return kept, true
		}
		return keptLabels(e.RHS)
	case *parser.AggregateExpr:
		return e.Grouping, !e.Without
	}
	return nil, false
}

// dashboardQueries reads the dashboard, and checks that Grafana can take it.
func dashboardQueries(t *testing.T) (queries []query) {
	t.Helper()
	var dashboard struct {
		Title, UID string
		Panels     []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ Expr, LegendFormat, RefID string }
		}
	}
	check(t, json.Unmarshal(must(os.ReadFile(filepath.Join(monitoringFolder, "dashboard.json")))(t), &dashboard))
	var rows []string
	taken := map[[2]int]string{}
	ids := map[int]bool{}
	for _, panel := range dashboard.Panels {
		where := "panel " + panel.Title
		if ids[panel.ID] {
			t.Errorf("%s has another's id", where)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q, or outside", where, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
			continue
		}
		if panel.Description == "" || len(panel.Targets) == 0 {
			t.Errorf("%s has no description, or no query", where)
		}
		for _, target := range panel.Targets {
			queries = append(queries, query{where, target.Expr, target.LegendFormat})
		}
	}
	if want := []string{"Runs", "Deliveries", "Status of senders", "Stragglers by reason", "Gateway", "Process"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %v, want %v", rows, want)
	}
	return queries
}

// alertQueries reads the rules, strictly: each alert says what has happened, and what to do.
func alertQueries(t *testing.T) (queries []query) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				For         model.Duration
				Labels      struct{ Severity string }
				Annotations struct{ Summary, Action string }
			}
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(must(os.ReadFile(filepath.Join(monitoringFolder, "alerts.yml")))(t)))
	decoder.KnownFields(true)
	check(t, decoder.Decode(&file))
	names := map[string]bool{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || names[rule.Alert] || names[group.Name] {
				t.Errorf("an alert of %s has no name, or another's: %q", group.Name, rule.Alert)
			}
			names[rule.Alert] = true
			if rule.Annotations.Summary == "" || rule.Annotations.Action == "" ||
				!slices.Contains([]string{"critical", "warning"}, rule.Labels.Severity) {
				t.Errorf("%s lacks a summary, an action or a severity", rule.Alert)
			}
			queries = append(queries, query{"alert " + rule.Alert, rule.Expr, rule.Annotations.Summary + rule.Annotations.Action})
		}
		names[group.Name] = true
	}
	return queries
}

func jobsOfScrapeConfig(t *testing.T) (jobs []string) {
	t.Helper()
	var config struct {
		ScrapeConfigs []struct {
			JobName string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
	}
	check(t, yaml.Unmarshal(must(os.ReadFile(filepath.Join(monitoringFolder, "prometheus.yml")))(t), &config))
	for _, scrape := range config.ScrapeConfigs {
		jobs = append(jobs, scrape.JobName)
	}
	return jobs
}
