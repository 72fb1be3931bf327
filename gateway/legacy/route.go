// Package legacy serves clients that do not know Muster's API: the paths, answers and habits of Sonobuoy's aggregator,
// on a separate listener for each run.
package legacy

import (
	"net/http"
	"regexp"
	"strings"

	"muster.example/services/client/go"
)

// Route is one path that legacy clients call.
type Route struct {
	Method, Path string
}

// Routes are all paths, written as in the OpenAPI document.
var Routes = []Route{
	{http.MethodPut, "/api/v1/results/by-node/{node}/{plugin}"},
	{http.MethodPut, "/api/v1/results/by_node/{node}/{plugin}"},
	{http.MethodPut, "/api/v1/results/global/{plugin}"},
	{http.MethodPost, "/api/v1/progress/by-node/{node}/{plugin}"},
	{http.MethodPost, "/api/v1/progress/global/{plugin}"},
	{http.MethodGet, "/api/v1/health/by-node/{node}/{plugin}"},
	{http.MethodGet, "/api/v1/health/global/{plugin}"},
}

// match finds the route of a decoded path: one segment for each name, no trailing slash, case-sensitive. `known` is
// true if the path exists for another method.
func match(method, decoded string) (route *Route, node, plugin string, known bool) {
	segments := strings.Split(decoded, "/")
	for i := range Routes {
		pattern := strings.Split(Routes[i].Path, "/")
		if len(pattern) != len(segments) {
			continue
		}
		node, plugin = muster.Global, ""
		fits := true
		for j, want := range pattern {
			switch want {
			case "{node}":
				node = segments[j]
			case "{plugin}":
				plugin = segments[j]
			default:
				fits = fits && want == segments[j]
			}
		}
		if !fits || isDotSegment(node) || isDotSegment(plugin) {
			continue
		}
		if Routes[i].Method == method {
			return &Routes[i], node, plugin, true
		}
		known = true
	}
	return nil, "", "", known
}

// isDotSegment reports whether a segment is empty or a dot segment.
func isDotSegment(segment string) bool { return segment == "" || segment == "." || segment == ".." }

var slashes = regexp.MustCompile("/{2,}")

// cleanPath returns the path without repeated slashes.
func cleanPath(decoded string) string { return slashes.ReplaceAllString(decoded, "/") }

// splitExtension handles the oldest clients, which append the file's extension to the plugin's name: everything from
// the first dot on, if the whole is not a plugin of the run and the rest is.
func splitExtension(name string, planned func(plugin string) bool) (plugin, extension string) {
	stem, rest, found := strings.Cut(name, ".")
	if !found || planned(name) || !planned(stem) {
		return name, ""
	}
	return stem, "." + rest
}
