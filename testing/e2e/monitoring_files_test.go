package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"text/template"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

const monitoringFolder = "../../deploy/monitoring"

// dashboardQueries reads the dashboard, and checks that Grafana can import it.
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
			t.Errorf("%s has a duplicate id", where)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s overlaps %q, or is outside", where, other)
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
	if want := []string{"Runs", "Deliveries", "Status of senders", "Stragglers by reason", "Gateway", "Relays", "Process"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %v, want %v", rows, want)
	}
	return queries
}

// promFunctions are the template functions of Prometheus that our alerts may use: it rejects a file with any other.
var promFunctions = template.FuncMap{"humanize": fmt.Sprint, "humanize1024": fmt.Sprint, "humanizeDuration": fmt.Sprint,
	"humanizePercentage": fmt.Sprint, "humanizeTimestamp": fmt.Sprint}

// wantTemplate fails unless Prometheus can expand an annotation.
func wantTemplate(t *testing.T, alert, text string) {
	t.Helper()
	parsed, err := template.New(alert).Funcs(promFunctions).Parse("{{$labels := .}}{{$value := 1.5}}" + text)
	if err == nil {
		err = parsed.Execute(io.Discard, map[string]string{})
	}
	if err != nil {
		t.Errorf("an annotation: %v", err)
	}
}

// alertQueries reads the rules strictly: each alert has a summary and an action.
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
				t.Errorf("an alert of %s has no name, or a duplicate one: %q", group.Name, rule.Alert)
			}
			names[rule.Alert] = true
			if rule.Annotations.Summary == "" || rule.Annotations.Action == "" ||
				!slices.Contains([]string{"critical", "warning"}, rule.Labels.Severity) {
				t.Errorf("%s lacks a summary, an action or a severity", rule.Alert)
			}
			wantTemplate(t, rule.Alert, rule.Annotations.Summary)
			wantTemplate(t, rule.Alert, rule.Annotations.Action)
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
