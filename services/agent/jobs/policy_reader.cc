#include "services/agent/jobs/policy_reader.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/base/text_values.h"
#include "services/common/base/yaml_documents.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/signed_command.h"

namespace muster {
namespace {

constexpr size_t kMaxRules = 1'000;
constexpr absl::Duration kMostTime = absl::Hours(24);
constexpr uint64_t kMostOutput = uint64_t{1} << 30;
constexpr uint64_t kLeastMemory = uint64_t{8} << 20;  // Docker's own least is 6 MiB
constexpr uint64_t kMostMemory = uint64_t{1} << 40;
constexpr double kLeastCpus = 0.01;
constexpr double kMostCpus = 1024;
constexpr int64_t kMostProcesses = 100'000;

// The actions of a kind of rules.
struct Actions {
  std::vector<std::string_view> names;
  std::string_view mistake;  // about another action
};
const Actions kOnNode = {{kExecAction, kRudderAction, kCollectAction},
                         "an action is exec, rudder or collect"};
const Actions kInContainer = {{kContainerAction, kDeploymentAction, kAdHocAction, kBuildAction},
                              "an action is container, deployment, ad-hoc or build"};

// Reads one document and collects its mistakes.
class PolicyReader {
 public:
  explicit PolicyReader(std::string_view file) : file_(file) {}

  void ReadTop(const YAML::Node& top, PolicyRules* rules) {
    if (top.IsNull()) return;  // an empty file
    if (!top.IsMap()) {
      return Mistake(top, "", "a policy is a map with commands, containers and collect");
    }
    ReadFields(
        top, "",
        {{"commands",
          [&](const YAML::Node& n) {
            ReadRules(n, "commands",
                      [&](const auto& rule) { rules->commands.push_back(ReadCommand(rule)); });
          }},
         {"containers",
          [&](const YAML::Node& n) {
            ReadRules(n, "containers",
                      [&](const auto& rule) { rules->containers.push_back(ReadContainer(rule)); });
          }},
         {"collect", [&](const YAML::Node& n) { rules->modules = ReadList(n, "collect"); }}});
  }

  absl::Status Result() const {
    if (mistakes_.empty()) return absl::OkStatus();
    return errors::InvalidPolicy(absl::StrJoin(mistakes_, "\n"));
  }

 private:
  using FieldReader = std::function<void(const YAML::Node&)>;
  using Fields = std::vector<std::pair<std::string, FieldReader>>;

  void Mistake(const YAML::Node& at, std::string_view field, std::string_view problem) {
    constexpr size_t kMaxMistakes = 20;  // a longer list is not useful
    if (mistakes_.size() >= kMaxMistakes) return;
    mistakes_.push_back(absl::StrCat(ToAbsl(file_), ":", at.Mark().line + 1, ": ", ToAbsl(field),
                                     field.empty() ? "" : ": ", ToAbsl(problem)));
  }

  void ReadFields(const YAML::Node& map, const std::string& prefix, const Fields& fields) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      const auto field =
          std::ranges::find(fields, name, &std::pair<std::string, FieldReader>::first);
      if (field == fields.end()) {
        std::vector<std::string> known;
        for (const auto& [key, reader] : fields) known.push_back(key);
        Mistake(entry.first, prefix + name, absl::StrCat("no such field", Suggestion(name, known)));
      } else if (!seen.insert(name).second) {
        Mistake(entry.first, prefix + name, "duplicate field");
      } else {
        field->second(entry.second);
      }
    }
  }

  std::vector<std::string> ReadList(const YAML::Node& list, const std::string& field) {
    std::vector<std::string> values;
    if (!list.IsSequence()) {
      Mistake(list, field, "must be a list");
      return values;
    }
    for (const YAML::Node& element : list) {
      if (element.IsScalar()) {
        values.push_back(element.Scalar());
      } else {
        Mistake(element, field, "an element must be plain text");
      }
    }
    return values;
  }

  void ReadRules(const YAML::Node& list, const std::string& field, const FieldReader& read) {
    if (!list.IsSequence()) return Mistake(list, field, "must be a list of rules");
    if (list.size() > kMaxRules) {
      return Mistake(list, field, absl::StrCat("more than ", kMaxRules, " rules"));
    }
    for (const YAML::Node& rule : list) {
      rule.IsMap() ? read(rule) : Mistake(rule, field, "a rule is a map");
    }
  }

  // Returns the readers of the fields that all rules have.
  Fields CommonFields(CommandRule* rule) {
    return {{"argv", [this, rule](const YAML::Node& n) { rule->argv = ReadList(n, "argv"); }},
            {"user", [this, rule](const YAML::Node& n) { ReadText(n, "user", &rule->user); }},
            {"environment",
             [this, rule](const YAML::Node& n) { rule->environment = ReadList(n, "environment"); }},
            {"time_limit", [this, rule](const YAML::Node& n) { ReadLimit(n, &rule->time_limit); }},
            {"max_output",
             [this, rule](const YAML::Node& n) { ReadSize(n, "max_output", &rule->max_output); }},
            {"signers", [this, rule](const YAML::Node& n) { rule->signers = ReadSigners(n); }}};
  }

  CommandRule ReadCommand(const YAML::Node& node) {
    CommandRule rule;
    Fields fields = CommonFields(&rule);
    fields.insert(
        fields.end(),
        {{"directory", [&](const YAML::Node& n) { ReadText(n, "directory", &rule.directory); }},
         {"actions", [&](const YAML::Node& n) { rule.actions = ReadActions(n, kOnNode); }},
         {"classes", [&](const YAML::Node& n) { rule.classes = ReadList(n, "classes"); }}});
    const size_t before = mistakes_.size();
    ReadFields(node, "commands.", fields);
    if (mistakes_.size() == before || !rule.argv.empty()) CheckRule(node, rule);
    return rule;
  }

  CommandRule ReadContainer(const YAML::Node& node) {
    CommandRule rule;
    rule.argv = {"**"};
    rule.actions = {std::string(kContainerAction)};
    rule.user =
        "65532:65532";  // a user without a name: no file of an image or of the node is theirs
    Fields fields = CommonFields(&rule);
    fields.insert(
        fields.end(),
        {{"images", [&](const YAML::Node& n) { rule.images = ReadList(n, "images"); }},
         {"actions", [&](const YAML::Node& n) { rule.actions = ReadActions(n, kInContainer); }},
         {"repositories",
          [&](const YAML::Node& n) { rule.repositories = ReadList(n, "repositories"); }},
         {"secrets", [&](const YAML::Node& n) { rule.secrets = ReadList(n, "secrets"); }},
         {"workspaces", [&](const YAML::Node& n) { rule.workspaces = ReadList(n, "workspaces"); }},
         {"network", [&](const YAML::Node& n) { ReadText(n, "network", &rule.container.network); }},
         {"memory", [&](const YAML::Node& n) { ReadSize(n, "memory", &rule.container.memory); }},
         {"cpus", [&](const YAML::Node& n) { ReadCpus(n, &rule.container.nano_cpus); }},
         {"max_files",
          [&](const YAML::Node& n) { ReadSize(n, "max_files", &rule.container.max_files); }},
         {"processes", [&](const YAML::Node& n) { ReadProcesses(n, &rule.container.processes); }}});
    const size_t before = mistakes_.size();
    ReadFields(node, "containers.", fields);
    if (mistakes_.size() == before && rule.images.empty()) {
      Mistake(node, "images", "is missing or empty");
    }
    const bool builds =
        std::ranges::find(rule.actions, std::string(kBuildAction)) != rule.actions.end();
    if (mistakes_.size() == before && builds == rule.repositories.empty()) {
      Mistake(node, "repositories",
              builds ? "is missing or empty: the action build requires the repositories"
                     : "is only for the action build");
    }
    CheckLast(node, rule);
    return rule;
  }

  void CheckRule(const YAML::Node& node, const CommandRule& rule) {
    if (rule.argv.empty()) return Mistake(node, "argv", "is missing or empty");
    if (rule.argv[0] != "**" && !rule.argv[0].starts_with("/")) {
      Mistake(node, "argv", "the program must be an absolute path, such as /usr/bin/uptime");
    }
    CheckLast(node, rule);
    if (!rule.directory.starts_with("/")) {
      Mistake(node, "directory", "must be an absolute path");
    }
  }

  void CheckLast(const YAML::Node& node, const CommandRule& rule) {
    for (size_t i = 0; i + 1 < rule.argv.size(); ++i) {
      if (rule.argv[i] == "**") Mistake(node, "argv", "** must be the last element");
    }
  }

  void ReadText(const YAML::Node& node, const std::string& field, std::string* value) {
    if (!node.IsScalar() || node.Scalar().empty()) {
      return Mistake(node, field, "must be plain text");
    }
    *value = node.Scalar();
  }

  void ReadLimit(const YAML::Node& node, absl::Duration* limit) {
    const auto value = node.IsScalar() ? ParseDuration(node.Scalar()) : std::nullopt;
    if (!value || *value < absl::Seconds(1) || *value > kMostTime) {
      return Mistake(node, "time_limit", "must be a time from 1s to 24h, such as 5m");
    }
    *limit = *value;
  }

  void ReadSize(const YAML::Node& node, const std::string& field, int64_t* size) {
    const auto value = node.IsScalar() ? ParseByteSize(node.Scalar()) : std::nullopt;
    const bool is_memory = field == "memory";
    if (!value || *value > (is_memory ? kMostMemory : kMostOutput) ||
        (is_memory && *value < kLeastMemory)) {
      return Mistake(node, field,
                     is_memory ? "must be a size from 8MiB to 1TiB, such as 512MiB"
                               : "must be a size up to 1GiB, such as 16MiB");
    }
    *size = static_cast<int64_t>(*value);
  }

  void ReadCpus(const YAML::Node& node, int64_t* nano_cpus) {
    double cpus = 0;
    if (!node.IsScalar() || !absl::SimpleAtod(node.Scalar(), &cpus) ||
        !(cpus >= kLeastCpus && cpus <= kMostCpus)) {
      return Mistake(node, "cpus", "must be a number from 0.01 to 1024, such as 0.5");
    }
    *nano_cpus = static_cast<int64_t>(cpus * 1e9);
  }

  void ReadProcesses(const YAML::Node& node, int64_t* processes) {
    if (!node.IsScalar() || !absl::SimpleAtoi(node.Scalar(), processes) || *processes < 1 ||
        *processes > kMostProcesses) {
      return Mistake(node, "processes", "must be a number from 1 to 100000");
    }
  }

  std::vector<std::string> ReadActions(const YAML::Node& node, const Actions& known) {
    std::vector<std::string> actions = ReadList(node, "actions");
    for (const std::string& action : actions) {
      if (std::ranges::find(known.names, action) == known.names.end()) {
        Mistake(node, "actions", known.mistake);
      }
    }
    return actions;
  }

  // An empty list would admit all signers, which its writer did not mean.
  std::vector<std::string> ReadSigners(const YAML::Node& node) {
    std::vector<std::string> signers = ReadList(node, "signers");
    if (node.IsSequence() && node.size() == 0)
      Mistake(node, "signers", "must not be empty; remove it to admit all signers");
    return signers;
  }

  const std::string_view file_;
  std::vector<std::string> mistakes_;
};

}  // namespace

absl::StatusOr<PolicyRules> ReadPolicy(std::string_view yaml, std::string_view file) {
  PolicyRules rules;
  PolicyReader reader(file);
  try {
    reader.ReadTop(YAML::Load(std::string(yaml)), &rules);
  } catch (const YAML::Exception& e) {
    return errors::InvalidPolicy(
        absl::StrCat(ToAbsl(file), ":", e.mark.line + 1, ": not YAML: ", YamlFault(e)));
  }
  RETURN_IF_ERROR(reader.Result());
  return rules;
}

}  // namespace muster
