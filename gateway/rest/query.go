package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"muster.example/gateway/gen"
)

// operation is what the OpenAPI document says about a route.
type operation struct {
	rpc        string   // the full name of the method, or that of a hand-written route
	parameters []string // of the query
}

// operations are those of all routes, by method and path as in the OpenAPI document.
type operations map[string]operation

// newOperations reads the OpenAPI document.
func newOperations() (operations, error) {
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(gen.OpenAPI, &document); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	all := operations{}
	for path, methods := range document.Paths {
		for method, text := range methods {
			if method == "parameters" { // those of all methods are in the path
				continue
			}
			one, err := newOperation(text)
			if err != nil {
				return nil, fmt.Errorf("openapi.json: %s %s: %w", method, path, err)
			}
			all[strings.ToUpper(method)+" "+path] = one
		}
	}
	return all, nil
}

func newOperation(text []byte) (one operation, err error) {
	var described struct {
		ID         string `json:"operationId"`
		Parameters []struct{ Name, In string }
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return one, err
	}
	service, method, _ := strings.Cut(described.ID, "_")
	if one.rpc = "/muster.v1." + service + "/" + method; service == "Gateway" {
		one.rpc = "/Gateway/" + strings.Replace(method, "Head", "Read", 1)
	}
	for _, parameter := range described.Parameters {
		if parameter.In == "query" {
			name, _, _ := strings.Cut(parameter.Name, "[") // the map "labels[string]" is given as labels[rack]=a
			one.parameters = append(one.parameters, name)
		}
	}
	return one, nil
}

var anySegment = regexp.MustCompile(`=\*\*?\}`)

// methods returns the methods of a path, for the header Allow.
func (p operations) methods(path string) (all []string) {
	for route := range p {
		method, pattern, _ := strings.Cut(route, " ")
		if regexp.MustCompile("^" + anyName.ReplaceAllString(regexp.QuoteMeta(pattern), "[^/:]+") + "$").MatchString(path) {
			all = append(all, method)
		}
	}
	slices.Sort(all)
	return all
}

var anyName = regexp.MustCompile(`\\\{[^/]*\\\}`)

// check is a middleware that refuses a caller that may not call the method, and a query with an unknown name or with
// text that is not UTF-8: a parameter with a mistake in its name would be ignored, and the call do more than was asked for.
func (s *Server) check(handle runtime.HandlerFunc) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, names map[string]string) {
		pattern, _ := runtime.HTTPPattern(r.Context())
		one := s.operations[r.Method+" "+anySegment.ReplaceAllString(pattern.String(), "}")]
		if s.refuseCaller(w, r, one.rpc) {
			return
		}
		if r.URL.RawQuery != "" {
			if problem, refused := one.refusal(r.URL.RawQuery); refused {
				AnswerProblem(w, http.StatusBadRequest, problem)
				return
			}
		}
		if body, ok := r.Body.(*content); ok {
			body.limit = bodyLimit(one.rpc)
		}
		handle(w, r, names)
	}
}

// refusal returns why a query is refused.
func (o *operation) refusal(text string) (Problem, bool) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return InvalidBody(err.Error()), true
	}
	return UnknownIn(query, o.parameters)
}

// UnknownIn returns the problem of a query with names other than the known ones, or with text that is not UTF-8. Names
// may be written in the forms pageSize and page_size.
func UnknownIn(query url.Values, known []string) (Problem, bool) {
	for name, values := range query {
		for _, text := range append([]string{name}, values...) {
			if !utf8.ValidString(text) {
				return InvalidBody("the query is not UTF-8"), true
			}
		}
		plain, _, _ := strings.Cut(name, "[")
		found := false
		for _, one := range known {
			found = found || one == plain || one == camel(plain)
		}
		if !found {
			return UnknownParameter(name, correct(name, known, "parameter")), true
		}
	}
	return Problem{}, false
}

var underscore = regexp.MustCompile("_[a-z]")

// camel returns the JSON form of a name.
func camel(name string) string {
	return underscore.ReplaceAllStringFunc(name, func(part string) string { return strings.ToUpper(part[1:]) })
}
