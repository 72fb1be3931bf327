#include "services/common/base/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/base/yaml_documents.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

constexpr size_t kMaxConfigFile = size_t{1} << 20;
constexpr size_t kMaxShownValue = 80;

std::string Quoted(const std::string& value) {
  YAML::Emitter out;
  out << YAML::DoubleQuoted << value;
  return out.c_str();
}

// As plain text where that reads back as the same string.
std::string AsYaml(const std::string& value) {
  if (value.empty()) return "\"\"";
  YAML::Emitter out;
  out << value;
  return out.c_str();
}

std::string AsYaml(const std::vector<std::string>& values) {
  return absl::StrCat("[",
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, const std::string& value) {
                                      // In a list a comma or bracket would end the value.
                                      absl::StrAppend(out, Quoted(value));
                                    }),
                      "]");
}

}  // namespace

// Walks one document and notes every mistake.
class Config::Reader {
 public:
  Reader(const Config& config, std::string_view file) : config_(config), file_(file) {
    for (const Field& field : config.fields_) {
      known_.push_back(field.name);
      for (size_t dot = field.name.find('.'); dot != std::string::npos;
           dot = field.name.find('.', dot + 1)) {
        groups_.push_back(field.name.substr(0, dot));
      }
    }
    known_.insert(known_.end(), groups_.begin(), groups_.end());
  }

  void ReadMap(const YAML::Node& map, const std::string& prefix) {
    for (const auto& entry : map) {
      const int line = entry.first.Mark().line + 1;
      if (!entry.first.IsScalar()) {
        Problem(line, prefix, "a field's name must be plain text");
        continue;
      }
      const std::string name = prefix + entry.first.Scalar();
      if (!lines_.emplace(name, line).second) {
        Problem(line, name, absl::StrCat("given twice, first in line ", lines_[name]));
        continue;
      }
      ReadEntry(name, line, entry.second);
    }
  }

  void Problem(int line, std::string_view name, std::string_view problem) {
    absl::StrAppend(&problems_, problems_.empty() ? "" : "\n", ToAbsl(file_), ":", line, ": ",
                    ToAbsl(name), name.empty() ? "" : ": ", ToAbsl(problem));
  }

  const std::string& problems() const { return problems_; }
  std::map<std::string, int, std::less<>> lines() { return std::move(lines_); }

 private:
  void ReadEntry(const std::string& name, int line, const YAML::Node& value) {
    const auto field = std::find_if(config_.fields_.begin(), config_.fields_.end(),
                                    [&](const Field& f) { return f.name == name; });
    if (field != config_.fields_.end()) {
      ReadField(*field, line, value);
    } else if (std::find(groups_.begin(), groups_.end(), name) == groups_.end()) {
      Problem(line, name, absl::StrCat("no such field", Suggestion(name, known_)));
    } else if (value.IsMap()) {
      ReadMap(value, name + ".");
    } else if (!value.IsNull()) {
      Problem(line, name, "must hold a group of fields");
    }
  }

  void ReadField(const Field& field, int line, const YAML::Node& value) {
    std::vector<std::string> elements;
    bool right_kind = field.list ? value.IsSequence() : value.IsScalar();
    if (right_kind && field.list) {
      for (const YAML::Node& element : value) {
        right_kind = right_kind && element.IsScalar();
        if (right_kind) elements.push_back(element.Scalar());
      }
    } else if (right_kind) {
      elements.push_back(value.Scalar());
    }
    if (!right_kind) {
      const std::string_view what = value.IsNull()       ? "has no value"
                                    : value.IsMap()      ? "cannot be a group of fields"
                                    : value.IsSequence() ? "has the wrong kind of value"
                                                         : "cannot be a single value";
      Problem(line, field.name, absl::StrCat(ToAbsl(what), "; allowed: ", field.allowed));
    } else if (const auto allowed = field.read(elements)) {
      std::string shown = absl::StrJoin(elements, ", ").substr(0, kMaxShownValue);
      Problem(line, field.name, absl::StrCat(Quoted(shown), " is not valid; allowed: ", *allowed));
    }
  }

  const Config& config_;
  const std::string_view file_;
  std::vector<std::string> groups_;
  std::vector<std::string> known_;  // fields and groups
  std::map<std::string, int, std::less<>> lines_;
  std::string problems_;
};

void Config::Add(Field field) {
  field.default_value = field.print();
  fields_.push_back(std::move(field));
}

void Config::String(std::string name, std::string* value, std::string comment, const Check& check) {
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = "text",
       .read = [value, check](const auto& given) -> std::optional<std::string> {
         if (check) {
           if (auto allowed = check(given[0])) return allowed;
         }
         *value = given[0];
         return std::nullopt;
       },
       .print = [value] { return AsYaml(*value); }});
}

void Config::OneOf(std::string name, std::string* value, std::string comment,
                   std::vector<std::string> choices) {
  const std::string allowed = absl::StrJoin(choices, ", ");
  String(std::move(name), value, std::move(comment),
         [choices = std::move(choices), allowed](const std::string& given) {
           const bool known = std::find(choices.begin(), choices.end(), given) != choices.end();
           return known ? std::nullopt : std::optional(allowed);
         });
  fields_.back().allowed = allowed;
}

void Config::Bool(std::string name, bool* value, std::string comment) {
  const std::string allowed = "true, false";
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = allowed,
       .read = [value, allowed](const auto& given) -> std::optional<std::string> {
         if (given[0] != "true" && given[0] != "false") return allowed;
         *value = given[0] == "true";
         return std::nullopt;
       },
       .print = [value] { return std::string(*value ? "true" : "false"); }});
}

void Config::Int(std::string name, int64_t* value, std::string comment, int64_t min, int64_t max) {
  const std::string allowed = absl::StrCat("a whole number from ", min, " to ", max);
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = allowed,
       .read = [value, min, max, allowed](const auto& given) -> std::optional<std::string> {
         int64_t number = 0;
         if (!absl::SimpleAtoi(given[0], &number) || number < min || number > max) return allowed;
         *value = number;
         return std::nullopt;
       },
       .print = [value] { return absl::StrCat(*value); }});
}

void Config::Duration(std::string name, absl::Duration* value, std::string comment,
                      absl::Duration min, absl::Duration max) {
  const std::string allowed =
      absl::StrCat("a time such as 30s or 5m, from ", absl::FormatDuration(min), " to ",
                   absl::FormatDuration(max));
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = allowed,
       .read = [value, min, max, allowed](const auto& given) -> std::optional<std::string> {
         const auto time = ParseDuration(given[0]);
         if (!time || *time < min || *time > max) return allowed;
         *value = *time;
         return std::nullopt;
       },
       .print = [value] { return absl::FormatDuration(*value); }});
}

void Config::ByteSize(std::string name, uint64_t* value, std::string comment, uint64_t min,
                      uint64_t max) {
  const std::string allowed = absl::StrCat("bytes such as 64KiB or 4MiB, from ",
                                           FormatByteSize(min), " to ", FormatByteSize(max));
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = allowed,
       .read = [value, min, max, allowed](const auto& given) -> std::optional<std::string> {
         const auto bytes = ParseByteSize(given[0]);
         if (!bytes || *bytes < min || *bytes > max) return allowed;
         *value = *bytes;
         return std::nullopt;
       },
       .print = [value] { return FormatByteSize(*value); }});
}

void Config::StringList(std::string name, std::vector<std::string>* value, std::string comment,
                        const Check& check_each) {
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = "a list of texts",
       .list = true,
       .read = [value, check_each](const auto& given) -> std::optional<std::string> {
         for (const std::string& element : given) {
           if (!check_each) break;
           if (const auto allowed = check_each(element)) {
             return absl::StrCat("a list, each element ", *allowed);
           }
         }
         *value = given;
         return std::nullopt;
       },
       .print = [value] { return AsYaml(*value); }});
}

void Config::AddressList(std::string name, std::vector<HostPort>* value, std::string comment) {
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = "a list of host:port, with IPv6 as [::1]:port",
       .list = true,
       .read = [value](const auto& given) -> std::optional<std::string> {
         std::vector<HostPort> addresses;
         for (const std::string& text : given) {
           auto address = ParseHostPort(text);
           if (!address) return "a list, each element host:port, with IPv6 as [::1]:port";
           addresses.push_back(*std::move(address));
         }
         *value = std::move(addresses);
         return std::nullopt;
       },
       .print =
           [value] {
             std::vector<std::string> texts;
             for (const HostPort& address : *value) texts.push_back(address.ToString());
             return AsYaml(texts);
           }});
}

void Config::Address(std::string name, HostPort* value, std::string comment) {
  const bool optional = value->host.empty();
  const std::string allowed =
      absl::StrCat("host:port, with IPv6 as [::1]:port", optional ? ", or \"\" for none" : "");
  Add({.name = std::move(name),
       .comment = std::move(comment),
       .allowed = allowed,
       .read = [value, optional, allowed](const auto& given) -> std::optional<std::string> {
         auto address = given[0].empty() && optional ? HostPort() : ParseHostPort(given[0]);
         if (!address) return allowed;
         *value = *std::move(address);
         return std::nullopt;
       },
       .print = [value] { return AsYaml(value->host.empty() ? "" : value->ToString()); }});
}

absl::Status Config::Failure(std::string_view problems) const {
  return errors::InvalidConfig(problems, program_);
}

absl::Status Config::Load(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFileBounded(path, kMaxConfigFile);
  if (!text.ok()) return Annotate(text.status(), "configuration");
  return Parse(*text, path);
}

absl::Status Config::Parse(std::string_view text, std::string_view file) {
  file_ = file;
  Reader reader(*this, file_);
  try {
    const std::vector<YAML::Node> documents = LoadYamlDocuments(std::string(text));
    if (documents.size() > 1) reader.Problem(1, "", "the file holds more than one document");
    for (const YAML::Node& document : documents) {
      if (document.IsMap()) {
        reader.ReadMap(document, "");
      } else if (!document.IsNull()) {
        reader.Problem(1, "", "the file must hold fields as `name: value`");
      }
    }
  } catch (const YAML::Exception& e) {
    reader.Problem(e.mark.line + 1, "", absl::StrCat("not YAML: ", YamlFault(e)));
  }
  read_line_ = reader.lines();
  return reader.problems().empty() ? absl::OkStatus() : Failure(reader.problems());
}

absl::Status Config::FieldError(std::string_view name, std::string_view problem) const {
  const auto line = read_line_.find(name);
  const std::string where =
      line == read_line_.end() ? file_ : absl::StrCat(file_, ":", line->second);
  return Failure(absl::StrCat(where, ": ", ToAbsl(name), ": ", ToAbsl(problem)));
}

std::string Config::Print() const {
  std::string out = absl::StrCat("# Configuration of ", program_, ".\n");
  std::vector<const Field*> all;
  all.reserve(fields_.size());
  for (const Field& field : fields_) all.push_back(&field);
  PrintGroup(all, 0, 0, &out);
  return out;
}

void Config::PrintGroup(const std::vector<const Field*>& fields, size_t prefix, int depth,
                        std::string* out) const {
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
  for (size_t i = 0; i < fields.size(); ++i) {
    const Field& field = *fields[i];
    const size_t dot = field.name.find('.', prefix);
    if (i > 0 || depth == 0) absl::StrAppend(out, "\n");
    if (dot == std::string::npos) {
      const std::string value = field.print();
      absl::StrAppend(out, indent, "# ", field.comment, "\n", indent, "# Allowed: ", field.allowed);
      if (value != field.default_value) absl::StrAppend(out, "; default: ", field.default_value);
      absl::StrAppend(out, "\n", indent, field.name.substr(prefix), ": ", value, "\n");
      continue;
    }
    const std::string group = field.name.substr(0, dot + 1);
    std::vector<const Field*> members;
    for (; i < fields.size() && fields[i]->name.starts_with(group); ++i) {
      members.push_back(fields[i]);
    }
    --i;
    absl::StrAppend(out, indent, group.substr(prefix, dot - prefix), ":\n");
    PrintGroup(members, dot + 1, depth + 1, out);
  }
}

}  // namespace muster
