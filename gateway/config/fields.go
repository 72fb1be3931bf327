package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster.example/gateway/similar"
)

// fields are the fields of one configuration file, in the format of all Muster services: a dot in a name makes a group,
// and messages and `--print-config` have one form.
type fields struct {
	program string
	all     []*field
}

// field is one field that the file may contain.
type field struct {
	name, comment, allowed string
	list                   bool
	read                   func([]string) bool // sets the value; false: the value is not allowed
	print                  func() string       // as YAML
	standard               string              // the default, as printed by print
}

// add registers a field with its present value as the default. The methods below add one of each kind.
func (f *fields) add(new field) {
	new.standard = new.print()
	f.all = append(f.all, &new)
}

func (f *fields) text(name string, value *string, comment, allowed string, fits func(string) bool) {
	f.add(field{name: name, comment: comment, allowed: allowed,
		read: func(given []string) bool {
			if fits != nil && !fits(given[0]) {
				return false
			}
			*value = given[0]
			return true
		},
		print: func() string { return scalar(*value) },
	})
}

func (f *fields) oneOf(name string, value *string, comment string, choices ...string) {
	f.text(name, value, comment, strings.Join(choices, ", "), func(given string) bool {
		return slices.Contains(choices, given)
	})
}

func (f *fields) boolean(name string, value *bool, comment string) {
	f.add(field{name: name, comment: comment, allowed: "true, false",
		read: func(given []string) bool {
			*value = given[0] == "true"
			return *value || given[0] == "false"
		},
		print: func() string { return strconv.FormatBool(*value) },
	})
}

func (f *fields) address(name string, value *string, comment string) {
	f.text(name, value, comment, "host:port, with IPv6 as [::1]:port", isAddress)
}

func (f *fields) optionalAddress(name string, value *string, comment string) {
	f.text(name, value, comment, "host:port, with IPv6 as [::1]:port, or nothing",
		func(given string) bool { return given == "" || isAddress(given) })
}

func (f *fields) integer(name string, value *int, comment string, low, high int) {
	f.add(field{name: name, comment: comment, allowed: fmt.Sprintf("a whole number from %d to %d", low, high),
		read: func(given []string) bool {
			number, err := strconv.Atoi(given[0])
			*value = number
			return err == nil && low <= number && number <= high
		},
		print: func() string { return strconv.Itoa(*value) },
	})
}

func (f *fields) duration(name string, value *time.Duration, comment string, low, high time.Duration) {
	f.add(field{name: name, comment: comment,
		allowed: fmt.Sprintf("a time such as 30s or 5m, from %s to %s", formatDuration(low), formatDuration(high)),
		read: func(given []string) bool {
			time, err := time.ParseDuration(given[0])
			*value = time
			return err == nil && low <= time && time <= high
		},
		print: func() string { return formatDuration(*value) },
	})
}

func (f *fields) byteSize(name string, value *int64, comment string, high int64) {
	f.add(field{name: name, comment: comment, allowed: "bytes such as 64KiB or 4MiB, from 0 to " + formatByteSize(high),
		read: func(given []string) bool {
			bytes, ok := parseByteSize(given[0])
			*value = bytes
			return ok && bytes <= high
		},
		print: func() string { return formatByteSize(*value) },
	})
}

func (f *fields) addresses(name string, value *[]string, comment string) {
	f.list(name, value, comment, "host:port", isAddress)
}

func (f *fields) ports(name string, value *string, comment, example string) {
	f.text(name, value, comment, "a port, a range such as "+example+", or 0 for any", func(given string) bool {
		_, _, err := parsePorts(given)
		return err == nil
	})
}

func (f *fields) list(name string, value *[]string, comment, allowed string, fits func(string) bool) {
	f.add(field{name: name, comment: comment, list: true, allowed: "a list, each element " + allowed,
		read: func(given []string) bool {
			*value = given
			return !slices.ContainsFunc(given, func(one string) bool { return !fits(one) })
		},
		print: func() string { return list(*value) },
	})
}

// load reads a file's text; fields that it leaves out keep their values. Its error has a line for every mistake:
// "file:line: field: what is wrong; what is allowed".
func (f *fields) load(content, file string) error {
	r := reader{fields: f, file: file, lines: map[string]int{}}
	decoder := yaml.NewDecoder(strings.NewReader(content))
	for count := 0; ; count++ {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			r.problems = append(r.problems, fmt.Errorf("%s: invalid YAML: %w", file, err))
		case count > 0:
			r.problem(1, "", "the file holds more than one document")
		default:
			r.document(document.Content[0])
		}
		if err != nil || count > 0 {
			break
		}
	}
	return errors.Join(r.problems...)
}

// reader reads one document and collects every mistake.
type reader struct {
	fields   *fields
	file     string
	lines    map[string]int
	problems []error
}

func (r *reader) problem(line int, name, text string) {
	if name != "" {
		name += ": "
	}
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %s%s", r.file, line, name, text))
}

func (r *reader) document(root *yaml.Node) {
	switch {
	case root.Kind == yaml.MappingNode:
		r.group(root, "")
	case root.Tag != "!!null":
		r.problem(1, "", "the file must hold fields as `name: value`")
	}
}

func (r *reader) group(group *yaml.Node, prefix string) {
	for i := 0; i+1 < len(group.Content); i += 2 {
		key, value := group.Content[i], group.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.problem(key.Line, strings.TrimSuffix(prefix, "."), "a field's name must be plain text")
			continue
		}
		name := prefix + key.Value
		if first := r.lines[name]; first != 0 {
			r.problem(key.Line, name, fmt.Sprintf("given twice, first in line %d", first))
			continue
		}
		r.lines[name] = key.Line
		r.entry(name, key.Line, value)
	}
}

func (r *reader) entry(name string, line int, value *yaml.Node) {
	isGroup := false
	for _, field := range r.fields.all {
		if field.name == name {
			r.value(field, line, value)
			return
		}
		isGroup = isGroup || strings.HasPrefix(field.name, name+".")
	}
	switch {
	case !isGroup:
		r.problem(line, name, "no such field"+r.fields.suggestion(name))
	case value.Kind == yaml.MappingNode:
		r.group(value, name+".")
	case value.Tag != "!!null":
		r.problem(line, name, "must hold a group of fields")
	}
}

// value sets a field to the value in the file, if it has the right kind.
func (r *reader) value(field *field, line int, value *yaml.Node) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	elements, right := []string{value.Value}, !field.list && value.Kind == yaml.ScalarNode && value.Tag != "!!null"
	if field.list && value.Kind == yaml.SequenceNode {
		elements, right = nil, true
		for _, element := range value.Content {
			right = right && element.Kind == yaml.ScalarNode
			elements = append(elements, element.Value)
		}
	}
	if !right {
		what := "cannot be a single value"
		switch {
		case value.Tag == "!!null":
			what = "has no value"
		case value.Kind == yaml.MappingNode:
			what = "cannot be a group of fields"
		case value.Kind == yaml.SequenceNode:
			what = "has the wrong kind of value"
		}
		r.problem(line, field.name, what+"; allowed: "+field.allowed)
		return
	}
	if !field.read(elements) {
		shown := strings.Join(elements, ", ")
		r.problem(line, field.name, fmt.Sprintf("%q is not valid; allowed: %s", shown[:min(len(shown), 80)], field.allowed))
	}
}

// printed returns a file with every field, its comment, the allowed values and its present value.
func (f *fields) printed() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Configuration of %s.\n", f.program)
	open := ""
	for _, field := range f.all {
		group, name, grouped := strings.Cut(field.name, ".")
		indent := ""
		if !grouped {
			group, name = "", field.name
		} else {
			indent = "  "
		}
		out.WriteString("\n")
		if group != open && grouped {
			out.WriteString(group + ":\n")
		}
		open = group
		fmt.Fprintf(&out, "%s# %s\n%s# Allowed: %s", indent, field.comment, indent, field.allowed)
		if value := field.print(); value != field.standard {
			out.WriteString("; default: " + field.standard)
		}
		fmt.Fprintf(&out, "\n%s%s: %s\n", indent, name, field.print())
	}
	return out.String()
}

// suggestion returns the field with the most similar name.
func (f *fields) suggestion(name string) string {
	best, least := "", max(2, len(name)/4)+1
	try := func(candidate string) {
		distance := similar.Distance(name, candidate)
		if lastPart(name) == lastPart(candidate) {
			distance = min(distance, 1)
		}
		if distance < least {
			best, least = "; did you mean "+candidate+"?", distance
		}
	}
	for _, field := range f.all {
		try(field.name)
	}
	for _, field := range f.all {
		if group, _, grouped := strings.Cut(field.name, "."); grouped {
			try(group)
		}
	}
	return best
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
