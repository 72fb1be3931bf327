#include "services/common/plugin/plugin_definition.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/base/yaml_documents.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

// The fields of a Kubernetes container.
constexpr const char* kContainerFields[] = {
    "name",
    "image",
    "command",
    "args",
    "workingDir",
    "ports",
    "envFrom",
    "env",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "volumeMounts",
    "volumeDevices",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "imagePullPolicy",
    "securityContext",
    "stdin",
    "stdinOnce",
    "tty",
};

// Reads the document and records every mistake.
class Reader {
 public:
  Reader(std::string_view file, PluginDefinition& out) : file_(file), out_(out) {}

  void Read(const YAML::Node& root) {
    if (!root.IsMap()) return Mistake(root, "", "the plugin definition must be a map");
    RefuseUnknown(root, "", {"sonobuoy-config", "spec", "podSpec", "extra-volumes", "config-map"});
    ReadConfig(root["sonobuoy-config"]);
    ReadSpec(root["spec"], root["podSpec"]);
    if (const YAML::Node volumes = root["extra-volumes"]; volumes && !volumes.IsSequence()) {
      Mistake(volumes, "extra-volumes", "must be a list of volumes");
    }
    ReadConfigMap(root["config-map"]);
  }

  absl::Status Result() const {
    if (mistakes_.empty()) return absl::OkStatus();
    return errors::InvalidPluginDefinition(absl::StrJoin(mistakes_, "\n"));
  }

 private:
  void Mistake(const YAML::Node& at, std::string_view field, std::string_view problem) {
    // The limit of reported mistakes.
    constexpr size_t kMaxMistakes = 20;
    if (mistakes_.size() >= kMaxMistakes) return;
    const int line = at && !at.Mark().is_null() ? at.Mark().line + 1 : 1;
    mistakes_.push_back(absl::StrCat(ToAbsl(file_), ":", line, ": ", ToAbsl(field),
                                     field.empty() ? "" : ": ", ToAbsl(problem)));
  }

  static std::string Below(std::string_view group, std::string_view key) {
    return absl::StrCat(ToAbsl(group), group.empty() ? "" : ".", ToAbsl(key));
  }

  void RefuseUnknown(const YAML::Node& map, std::string_view group,
                     const std::vector<std::string>& known) {
    for (const auto& field : map) {
      const YAML::Node& key = field.first;
      const std::string name = key.IsScalar() ? key.Scalar() : "?";
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      Mistake(key, Below(group, SafeFileName(name)),
              absl::StrCat("unknown field", Suggestion(name, known)));
    }
  }

  void ReadConfig(const YAML::Node& config) {
    constexpr char kGroup[] = "sonobuoy-config";
    if (!config) return Mistake(config, kGroup, "missing; it must contain driver and plugin-name");
    if (!config.IsMap()) return Mistake(config, kGroup, "must be a map");
    RefuseUnknown(config, kGroup,
                  {"driver", "plugin-name", "result-format", "result-type", "result-files", "order",
                   "skip-cleanup", "description", "source-url"});
    ReadDriver(config);
    ReadName(config);
    std::string format;
    if (Text(config, kGroup, "result-format", format)) {
      if (format == "e2e") format = "junit";
      if (format != "junit" && format != "gojson" && format != "manual") format = "raw";
      out_.result_format = format;
    }
    Texts(config, kGroup, "result-files", out_.result_files);
    Text(config, kGroup, "description", out_.description);
    Text(config, kGroup, "source-url", out_.source_url);
    std::string text;
    if (Text(config, kGroup, "order", text)) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out_.order);
      if (error != std::errc() || end != text.data() + text.size()) {
        Mistake(config["order"], "sonobuoy-config.order", "must be a whole number");
      }
    }
    if (Text(config, kGroup, "skip-cleanup", text) &&
        !YAML::convert<bool>::decode(config["skip-cleanup"], out_.skip_cleanup)) {
      Mistake(config["skip-cleanup"], "sonobuoy-config.skip-cleanup", "must be true or false");
    }
  }

  void ReadDriver(const YAML::Node& config) {
    constexpr char kField[] = "sonobuoy-config.driver";
    if (IsMissing(config["driver"])) {
      return Mistake(config, kField, "missing; must be Job or DaemonSet");
    }
    std::string driver;
    if (!Text(config, "sonobuoy-config", "driver", driver)) return;
    out_.once = absl::EqualsIgnoreCase(driver, "job");
    if (!out_.once && !absl::EqualsIgnoreCase(driver, "daemonset")) {
      Mistake(config["driver"], kField, "must be Job or DaemonSet");
    }
  }

  void ReadName(const YAML::Node& config) {
    constexpr char kField[] = "sonobuoy-config.plugin-name";
    if (IsMissing(config["plugin-name"])) return Mistake(config, kField, "missing");
    if (!Text(config, "sonobuoy-config", "plugin-name", out_.name)) return;
    if (const absl::Status valid = ValidatePluginName(out_.name); !valid.ok()) {
      Mistake(config["plugin-name"], kField, ToStd(valid.message()));
    }
  }

  void ReadSpec(const YAML::Node& spec, const YAML::Node& pod) {
    if (pod && !pod.IsMap()) Mistake(pod, "podSpec", "must be a map (a Kubernetes pod spec)");
    if (!spec && !pod) return Mistake(spec, "spec", "missing; it must name the program or image");
    if (spec && !spec.IsMap()) {
      return Mistake(spec, "spec", "must be a map (a Kubernetes container)");
    }
    if (spec) {
      Text(spec, "spec", "image", out_.image);
      Texts(spec, "spec", "command", out_.command);
      Texts(spec, "spec", "args", out_.args);
    }
    if (!out_.image.empty() || HasContainers(pod)) {
      out_.kind = PluginKind::kContainer;
    } else if (!out_.command.empty() || !out_.args.empty()) {
      out_.kind = PluginKind::kExec;
    }
    if (!spec) return;
    // Kubernetes checks the containers.
    if (out_.kind != PluginKind::kContainer) {
      RefuseUnknown(spec, "spec", {std::begin(kContainerFields), std::end(kContainerFields)});
    }
    ReadEnv(spec["env"]);
  }

  static bool HasContainers(const YAML::Node& pod) {
    return pod && pod.IsMap() && pod["containers"] && pod["containers"].size() > 0;
  }

  void ReadEnv(const YAML::Node& env) {
    if (IsMissing(env)) return;
    if (!env.IsSequence()) {
      return Mistake(env, "spec.env", "must be a list of {name, value}");
    }
    for (const YAML::Node& variable : env) {
      if (!variable.IsMap() || !variable["name"] || !variable["name"].IsScalar() ||
          variable["name"].Scalar().empty()) {
        Mistake(variable, "spec.env", "each entry must be a map with a name");
        continue;
      }
      if (out_.kind != PluginKind::kContainer) {
        RefuseUnknown(variable, "spec.env", {"name", "value", "valueFrom"});
      }
      if (variable["valueFrom"]) {
        // Only Kubernetes can resolve the value.
        if (out_.kind != PluginKind::kContainer) {
          Mistake(variable["valueFrom"], "spec.env.valueFrom",
                  "requires an image; use value instead");
        }
      } else if (const YAML::Node value = variable["value"];
                 value && !value.IsScalar() && !value.IsNull()) {
        Mistake(value, "spec.env.value", "must be a string");
      } else {
        out_.env.emplace_back(variable["name"].Scalar(),
                              value && value.IsScalar() ? value.Scalar() : "");
      }
    }
  }

  void ReadConfigMap(const YAML::Node& map) {
    if (IsMissing(map)) return;
    if (!map.IsMap()) return Mistake(map, "config-map", "must be a map of file names to strings");
    for (const auto& file : map) {
      const YAML::Node& key = file.first;
      const YAML::Node& value = file.second;
      if (key.IsScalar() && value.IsScalar()) {
        out_.config_map[key.Scalar()] = value.Scalar();
      } else {
        Mistake(key, "config-map", "must be a map of file names to strings");
      }
    }
  }

  // A field without a value is null in YAML.
  static bool IsMissing(const YAML::Node& field) { return !field || field.IsNull(); }

  // Returns true if the field exists and is a text or a number, which YAML does not require to be
  // quoted.
  bool Text(const YAML::Node& map, std::string_view group, const std::string& key,
            std::string& out) {
    const YAML::Node value = map[key];
    if (IsMissing(value)) return false;
    if (!value.IsScalar()) {
      Mistake(value, Below(group, key), "must be a string");
      return false;
    }
    out = value.Scalar();
    return true;
  }

  void Texts(const YAML::Node& map, std::string_view group, const std::string& key,
             std::vector<std::string>& out) {
    const YAML::Node list = map[key];
    if (IsMissing(list)) return;
    if (!list.IsSequence()) return Mistake(list, Below(group, key), "must be a list of strings");
    for (const YAML::Node& value : list) {
      if (value.IsScalar()) {
        out.push_back(value.Scalar());
      } else {
        Mistake(value, Below(group, key), "must be a list of strings");
      }
    }
  }

  const std::string_view file_;
  PluginDefinition& out_;
  std::vector<std::string> mistakes_;
};

}  // namespace

absl::Status ValidatePluginName(std::string_view name) {
  RETURN_IF_ERROR(ValidateName("a plugin", name));
  if (name == "sonobuoy")
    return errors::InvalidPluginDefinition("the plugin name \"sonobuoy\" is reserved");
  return absl::OkStatus();
}

absl::StatusOr<PluginDefinition> ParsePluginDefinition(std::string_view yaml,
                                                       std::string_view file) {
  if (yaml.size() > kMaxPluginDefinition) {
    return errors::InvalidPluginDefinition(
        absl::StrCat(ToAbsl(file), ": ", yaml.size(), " bytes, more than ", kMaxPluginDefinition));
  }
  PluginDefinition definition{.yaml = std::string(yaml)};
  Reader reader(file, definition);
  try {
    std::vector<YAML::Node> documents = LoadYamlDocuments(definition.yaml);
    std::erase_if(documents, [](const YAML::Node& d) { return d.IsNull(); });
    if (documents.empty())
      return errors::InvalidPluginDefinition(absl::StrCat(ToAbsl(file), ": it is empty"));
    if (documents.size() > 1) {
      return errors::InvalidPluginDefinition(
          absl::StrCat(ToAbsl(file), ":", documents[1].Mark().line + 1,
                       ": a second document: write each plugin to its own file"));
    }
    reader.Read(documents[0]);
  } catch (const YAML::Exception& e) {
    return errors::InvalidPluginDefinition(absl::StrCat(ToAbsl(file), ":",
                                                        e.mark.is_null() ? 1 : e.mark.line + 1,
                                                        ": ", "invalid YAML: ", YamlFault(e)));
  }
  RETURN_IF_ERROR(reader.Result());
  return definition;
}

}  // namespace muster
