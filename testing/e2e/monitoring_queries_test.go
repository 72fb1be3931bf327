package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"google.golang.org/protobuf/proto"
)

// query is PromQL in a file, with the labels that its text shows.
type query struct{ where, text, shown string }

var (
	// Labels that Prometheus adds to everything.
	targetLabels = []string{"instance", "job"}
	shownLabel   = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// The check itself finds each of these mistakes.
func TestInvalidQueriesAreDetected(t *testing.T) {
	text := "# HELP c_total x\n# TYPE c_total counter\nc_total{code=\"OK\"} 1\n# HELP g x\n# TYPE g gauge\ng{state=\"A\"} 1\n"
	families := map[string]*dto.MetricFamily{}
	readFamilies(t, text, families)
	for expression, says := range map[string]string{
		`sum(rate(c_total[5m]`:                     "parse error",
		`sum(rate(absent_total[5m]))`:              "unknown metric absent_total",
		`c_total{method="x"}`:                      "no label method",
		`sum by (method) (rate(c_total[5m]))`:      "no label method",
		`rate(g[5m])`:                              "g is not a counter",
		`g{state="B"}`:                             "never B",
		`g{state=~"A|B"}`:                          "never B",
		`up{job="muster-other"}`:                   "never muster-other",
		`{state="A"}`:                              "without a metric",
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

// faultsOf returns the faults of a query.
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
			complain("the text shows %s, which the result does not have", label)
		}
	}
	return faults
}

// find returns a family by the name of one of its series: a histogram has counters of its buckets.
func find(families map[string]*dto.MetricFamily, name string) *dto.MetricFamily {
	whole := strings.TrimSuffix(name, "_bucket")
	histogram := families[whole]
	if whole == name || histogram.GetType() != dto.MetricType_HISTOGRAM {
		return families[name]
	}
	le := &dto.LabelPair{Name: proto.String("le"), Value: proto.String("1")}
	buckets := &dto.MetricFamily{Name: &name, Type: dto.MetricType_COUNTER.Enum()}
	for _, metric := range histogram.Metric {
		buckets.Metric = append(buckets.Metric, &dto.Metric{Label: append(slices.Clone(metric.Label), le)})
	}
	return buckets
}

func faultsOfSelector(s *parser.VectorSelector, path []parser.Node, families map[string]*dto.MetricFamily, jobs []string) (faults []string) {
	if s.Name == "" {
		return []string{"a selector without a metric"}
	}
	family := find(families, s.Name)
	if family == nil && s.Name != "up" { // Prometheus adds `up`
		return []string{"unknown metric " + s.Name}
	}
	for _, node := range path {
		call, ok := node.(*parser.Call)
		if ok && slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name) && family.GetType() != dto.MetricType_COUNTER {
			faults = append(faults, s.Name+" is not a counter")
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
		case matcher.Name != "code": // the codes so far say little
			for _, value := range alternatives(matcher) {
				if !hasValue(family, matcher.Name, value) {
					faults = append(faults, matcher.Name+" is never "+value)
				}
			}
		}
	}
	return faults
}

// alternatives returns the values that a matcher names: A, or those of PREFIX_(A|B) and A|B; none for other patterns.
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

// anyHas reports whether a metric in the expression has the label.
func anyHas(expression parser.Node, label string, families map[string]*dto.MetricFamily) (found bool) {
	if slices.Contains(targetLabels, label) {
		return true
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok && find(families, s.Name) != nil {
			found = found || slices.Contains(labelsOf(find(families, s.Name)), label)
		}
		return nil
	})
	return found
}

// keptLabels returns the labels of a result, if they are known: for an aggregation, those that it is by.
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
