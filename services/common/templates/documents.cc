#include "services/common/templates/documents.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/suggestion.h"
#include "services/common/base/text_values.h"
#include "services/common/errors/templates.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/template_source.h"
#include "services/common/templates/version.h"
#include "services/common/templates/yaml_to_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kApiVersion = "muster/v1";
constexpr char kTypeKind[] = "TemplateType";
constexpr char kTemplateKind[] = "Template";
constexpr size_t kMaxMistakes = 50;
constexpr size_t kMaxArguments = 100;
constexpr size_t kMaxBuildFolder = 255;
// The documents of types that come with Muster have it: their images are built by their users.
constexpr std::string_view kPlaceholder =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";
// Folders that a container does not have from its image.
constexpr std::string_view kOtherFolders[] = {"/dev",   "/files", "/proc", "/secrets",
                                              "/state", "/sys",   "/tmp"};

// The folder becomes part of a Dockerfile: only plain characters.
bool IsBuildFolder(const std::string& path) {
  if (path.size() < 2 || path.size() > kMaxBuildFolder || path[0] != '/') return false;
  for (const absl::string_view part : absl::StrSplit(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == "..") return false;
    const bool plain = std::ranges::all_of(part, [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
    });
    if (!plain) return false;
  }
  return std::ranges::none_of(kOtherFolders, [&](std::string_view other) {
    return (path + "/").starts_with(std::string(other) + "/");
  });
}

// Reads the fields of one document, and collects its mistakes.
class DocumentReader {
 public:
  explicit DocumentReader(Json document)
      : exact_(std::move(document)), document_(WithDoubles(exact_)) {}

  // Reads a field, at most once each. Fields that are not read are mistakes.
  const Json* Field(const char* name) {
    known_.insert(name);
    const auto found = document_.find(name);
    return found == document_.end() ? nullptr : &*found;
  }

  std::string Text(const char* name, bool required) {
    const Json* value = Field(name);
    if (value == nullptr) {
      if (required) Mistake(name, "is missing");
      return "";
    }
    if (!value->is_string()) Mistake(name, "must be text");
    return value->is_string() ? value->get<std::string>() : "";
  }

  void Expect(const char* name, const Json& wanted) {
    const Json* value = Field(name);
    if (value == nullptr) return Mistake(name, "is missing");
    if (*value != wanted) Mistake(name, absl::StrCat("must be ", wanted.dump()));
  }

  bool Bool(const char* name) {
    const Json* value = Field(name);
    if (value != nullptr && !value->is_boolean()) Mistake(name, "must be true or false");
    return value != nullptr && *value == Json(true);
  }

  void NameAndVersion(std::string* name, std::string* version) {
    *name = Text("name", true);
    if (!name->empty() && !ValidateName("a template", *name).ok()) {
      Mistake("name", "must be 1 to 253 of A-Z a-z 0-9 . _ - without a dot at the beginning");
    }
    *version = Text("version", true);
    if (!version->empty() && !IsVersion(*version)) {
      Mistake("version",
              "must be a version such as 1.2.0 or 1.2.0-rc.1 (semver.org, without +BUILD)");
    }
  }

  std::vector<std::string> Actions() {
    const Json* list = Field("actions");
    if (list == nullptr) return {"deploy"};
    std::vector<std::string> actions;
    if (!list->is_array() || list->empty()) {
      Mistake("actions", "must be a list of names");
      return actions;
    }
    for (const Json& action : *list) {
      if (!action.is_string() || !ValidateName("an action", action.get<std::string>()).ok()) {
        Mistake("actions", "each must be a name, such as deploy");
      } else {
        actions.push_back(action.get<std::string>());
      }
    }
    if (std::ranges::find(actions, "deploy") == actions.end()) {
      Mistake("actions", "must contain deploy");
    }
    return actions;
  }

  std::vector<std::string> Idempotent(const std::vector<std::string>& actions) {
    const Json* list = Field("idempotent");
    if (list == nullptr) return {};
    const auto is_action = [&](const Json& name) {
      return name.is_string() &&
             std::ranges::find(actions, name.get<std::string>()) != actions.end();
    };
    if (!list->is_array() || !std::ranges::all_of(*list, is_action)) {
      Mistake("idempotent", "must be a list of names that are in actions");
      return {};
    }
    return list->get<std::vector<std::string>>();
  }

  std::vector<std::string> Command() {
    const Json* list = Field("command");
    if (list == nullptr) return {};
    const auto is_argument = [](const Json& argument) {
      return argument.is_string() && argument.get<std::string>().find('\0') == std::string::npos;
    };
    if (!list->is_array() || list->empty() || list->size() > kMaxArguments ||
        !std::ranges::all_of(*list, is_argument) || list->front() == "") {
      Mistake("command", absl::StrCat("must be a program and its arguments, a list of 1 to ",
                                      kMaxArguments, " texts"));
      return {};
    }
    return list->get<std::vector<std::string>>();
  }

  std::string BuildFolder() {
    const Json* build = Field("build");
    if (build == nullptr) return "";
    const bool known = build->is_object() && build->size() == 1 && build->contains("folder") &&
                       (*build)["folder"].is_string();
    if (known && IsBuildFolder((*build)["folder"].get<std::string>())) {
      return (*build)["folder"].get<std::string>();
    }
    Mistake("build",
            "must be {folder: PATH}: an absolute path of A-Z a-z 0-9 . _ - and /, which is not "
            "below /dev, /files, /proc, /state, /sys or /tmp");
    return "";
  }

  void Built(TemplateDocument* own) {
    own->image = Text("image", false);
    const Json* source = Field("source");
    if (own->image.empty() != (source == nullptr)) {
      return Mistake("image", "a built template has both image and source");
    }
    if (source == nullptr) return;
    if (!IsImageByContent(own->image)) Mistake("image", "must be NAME@sha256:DIGEST");
    auto read = SourceFromJson(*source);
    if (!read.ok()) return Mistake("source", ToStd(read.status().message()));
    own->source = *std::move(read);
  }

  TemplateLimits Limits() {
    TemplateLimits limits;
    const Json* json = Field("limits");
    if (json == nullptr) return limits;
    if (!json->is_object()) {
      Mistake("limits", "must be an object");
      return limits;
    }
    static const std::vector<std::string> kLimits = {"cpus", "memory", "output", "processes",
                                                     "time"};
    for (const auto& [name, value] : json->items()) {
      const std::string place = "limits/" + name;
      if (name == "memory" || name == "output") {
        const auto size =
            value.is_string() ? ParseByteSize(value.get<std::string>()) : std::nullopt;
        if (!size || *size == 0 || *size > uint64_t{1} << 40) {
          Mistake(place, "must be a size up to 1TiB, such as 512MiB");
        } else {
          (name == "memory" ? limits.memory : limits.output) = static_cast<int64_t>(*size);
        }
      } else if (name == "cpus") {
        if (!value.is_number() || value.get<double>() < 0.01 || value.get<double>() > 1024) {
          Mistake(place, "must be a number from 0.01 to 1024");
        } else {
          limits.cpus = value.get<double>();
        }
      } else if (name == "processes") {
        if (!value.is_number_integer() || value < 1 || value > 100'000) {
          Mistake(place, "must be a number from 1 to 100000");
        } else {
          limits.processes = value.get<int64_t>();
        }
      } else if (name == "time") {
        const auto time =
            value.is_string() ? ParseDuration(value.get<std::string>()) : std::nullopt;
        if (!time || *time < absl::Seconds(1) || *time > absl::Hours(24)) {
          Mistake(place, "must be a time from 1s to 24h, such as 5m");
        } else {
          limits.time = *time;
        }
      } else {
        Mistake(place, absl::StrCat("no such field", Suggestion(name, kLimits)));
      }
    }
    return limits;
  }

  std::vector<Parameter> Parameters() {
    if (Field("parameters") == nullptr) return {};
    return ReadParameters(exact_["parameters"], Definitions(), &mistakes_);
  }

  std::vector<Output> Outputs() {
    std::vector<Output> outputs;
    const Json* json = Field("outputs");
    if (json == nullptr) return outputs;
    // An output is described as a parameter, and never has a value.
    for (Parameter& output : ReadParameters(*json, Definitions(), &mistakes_)) {
      if (output.value) Mistake("outputs/" + output.name, "an output has no value");
      outputs.push_back({output.name, output.description, std::move(output.schema), output.required,
                         output.sensitive});
    }
    return outputs;
  }

  std::vector<SecretDeclaration> Secrets() {
    const Json* json = Field("secrets");
    if (json == nullptr) return {};
    return ReadSecrets(*json, &mistakes_);
  }

  void Mistake(std::string_view place, std::string_view problem) {
    mistakes_.push_back(absl::StrCat("/", ToAbsl(place), ": ", ToAbsl(problem)));
  }

  // Returns the mistakes, after all fields were read.
  absl::Status Result() {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [name, value] : document_.items()) {
      if (!known_.contains(name))
        Mistake(name, absl::StrCat("no such field", Suggestion(name, known)));
    }
    if (mistakes_.empty()) return absl::OkStatus();
    mistakes_.resize(std::min(mistakes_.size(), kMaxMistakes));
    return errors::InvalidDocument(absl::StrJoin(mistakes_, "\n"));
  }

 private:
  const Json& Definitions() {
    static const Json none;
    const Json* definitions = Field("definitions");
    return definitions == nullptr ? none : *definitions;
  }

  const Json exact_;     // with the numbers of exact_json.h
  const Json document_;  // with doubles
  std::set<std::string> known_;
  std::vector<std::string> mistakes_;
};

// Returns the document as an object. Fails with one error if it is of the other kind, whose fields
// would all be mistakes.
absl::StatusOr<Json> ReadObject(std::string_view text, const char* wanted) {
  ASSIGN_OR_RETURN(Json json, YamlToJson(text));
  if (!json.is_object()) {
    return errors::InvalidDocument("it has no fields: each is a line such as `name: web`");
  }
  const auto kind = json.find("kind");
  if (kind == json.end() || *kind == Json(wanted)) return json;
  if (*kind == Json(kTypeKind)) return errors::WrongKind(kTypeKind, wanted, "muster type push");
  if (*kind != Json(kTemplateKind)) return json;
  return errors::WrongKind(kTemplateKind, wanted, "muster template create");
}

}  // namespace

absl::StatusOr<TypeDocument> ReadType(std::string_view text) {
  ASSIGN_OR_RETURN(Json json, ReadObject(text, kTypeKind));
  DocumentReader reader(std::move(json));
  TypeDocument type;
  reader.Expect("apiVersion", kApiVersion);
  reader.Expect("kind", kTypeKind);
  reader.NameAndVersion(&type.name, &type.version);
  type.description = reader.Text("description", false);
  type.image = reader.Text("image", true);
  if (!type.image.empty() && !IsImageByContent(type.image)) {
    reader.Mistake("image", "must be NAME@sha256:DIGEST");
  } else if (type.image.ends_with(kPlaceholder)) {
    reader.Mistake("image",
                   "its digest of zeros is a placeholder: write the one of your image, which "
                   "`docker image inspect --format '{{index .RepoDigests 0}}' IMAGE` prints after "
                   "`docker push`");
  }
  type.ad_hoc = reader.Bool("adHoc");
  type.command = reader.Command();
  if (!type.command.empty() && !type.ad_hoc) {
    reader.Mistake("command", "only a type with adHoc: true has a command");
  }
  reader.Expect("contract", kTemplateContract);
  type.actions = reader.Actions();
  type.idempotent = reader.Idempotent(type.actions);
  type.network = reader.Text("network", false);
  if (type.network.empty()) type.network = "none";
  type.build_folder = reader.BuildFolder();
  if (type.ad_hoc && !type.build_folder.empty()) {
    reader.Mistake("build", "a type with adHoc: true gets its files at each deployment");
  }
  type.limits = reader.Limits();
  type.parameters = reader.Parameters();
  type.outputs = reader.Outputs();
  type.secrets = reader.Secrets();
  type.vault = reader.Bool("vault");
  RETURN_IF_ERROR(reader.Result());
  return type;
}

absl::StatusOr<TemplateDocument> ReadTemplate(std::string_view text) {
  ASSIGN_OR_RETURN(Json json, ReadObject(text, kTemplateKind));
  DocumentReader reader(std::move(json));
  TemplateDocument own;
  reader.Expect("apiVersion", kApiVersion);
  reader.Expect("kind", kTemplateKind);
  reader.NameAndVersion(&own.name, &own.version);
  own.description = reader.Text("description", false);
  own.type = reader.Text("type", true);
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(own.type, absl::MaxSplits('@', 1));
  if (!own.type.empty() &&
      (!ValidateName("a type", parts.first).ok() || !IsVersion(parts.second))) {
    reader.Mistake("type", "must be NAME@VERSION, such as ansible@1.2.0");
  }
  reader.Built(&own);
  own.limits = reader.Limits();
  own.parameters = reader.Parameters();
  own.outputs = reader.Outputs();
  own.secrets = reader.Secrets();
  RETURN_IF_ERROR(reader.Result());
  return own;
}

absl::StatusOr<MergedParameters> MergeTemplate(const TypeDocument& type,
                                               const TemplateDocument& own) {
  std::vector<std::string> mistakes;
  MergedParameters merged = MergeParameters(type.parameters, own.parameters, &mistakes);
  const auto raises = [&](const char* name, const auto& limit, const auto& of_type) {
    if (!limit || !of_type || *limit <= *of_type) return;
    mistakes.push_back(absl::StrCat("/limits/", name, ": is more than that of the type"));
  };
  raises("memory", own.limits.memory, type.limits.memory);
  raises("cpus", own.limits.cpus, type.limits.cpus);
  raises("processes", own.limits.processes, type.limits.processes);
  raises("time", own.limits.time, type.limits.time);
  raises("output", own.limits.output, type.limits.output);
  for (const Output& output : own.outputs) {
    const auto same = [&](const Output& other) { return other.name == output.name; };
    if (std::ranges::any_of(type.outputs, same)) {
      mistakes.push_back(absl::StrCat("/outputs/", output.name, ": the type has this output"));
    }
  }
  if (!mistakes.empty()) return errors::InvalidDocument(absl::StrJoin(mistakes, "\n"));
  return merged;
}

}  // namespace muster
