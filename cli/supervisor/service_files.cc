#include "cli/supervisor/service_files.h"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/supervisor/home.h"
#include "httplib.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/yaml_documents.h"
#include "services/common/errors/cli.h"

namespace muster::supervisor {
namespace {

constexpr size_t kMaxConfig = size_t{1} << 20;
constexpr absl::Duration kPrintLimit = absl::Seconds(20);

// Returns true for "key: ..." and "# key: ...".
bool IsLineOf(absl::string_view line, absl::string_view key) {
  absl::ConsumePrefix(&line, "# ");
  return absl::ConsumePrefix(&line, key) && absl::StartsWith(line, ":");
}

absl::StatusOr<std::string> PrintConfig(std::string_view service) {
  ASSIGN_OR_RETURN(const std::string program, ServiceProgram(service));
  ASSIGN_OR_RETURN(auto process,
                   Subprocess::Start({.argv = {program, "--print-config"},
                                      .environment = AllowListedEnvironment({"PATH", "HOME"}),
                                      .out = ChildOutput::Tail(kMaxConfig),
                                      .err = ChildOutput::Tail(4096)}));
  const std::optional<ExitStatus> end = process->Wait(kPrintLimit);
  if (end && end->ok()) return process->StdoutTail();
  return errors::ProgramFailed(program, end ? end->Describe() : "did not exit",
                               process->StderrTail());
}

// Returns the top level of the file, or an empty map if the file does not exist.
absl::StatusOr<YAML::Node> Load(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadFileBounded(file, kMaxConfig);
  if (absl::IsNotFound(text.status())) return YAML::Node(YAML::NodeType::Map);
  if (!text.ok()) return text.status();
  try {
    YAML::Node node = YAML::Load(*text);
    if (node.IsMap() || node.IsNull()) return node;
    return errors::InvalidServiceConfig(file, "the file has no keys");
  } catch (const YAML::Exception& fault) {
    return errors::InvalidServiceConfig(
        file, absl::StrCat("line ", fault.mark.line + 1, ": ", YamlFault(fault)));
  }
}

}  // namespace

absl::StatusOr<std::string> ServiceProgram(std::string_view service) {
  std::string folder;
  if (const char* set = std::getenv("MUSTER_LIBEXEC"); set != nullptr && *set != '\0') {
    folder = set;
  } else {
    std::error_code ignored;
    folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  }
  const std::string path = absl::StrCat(folder, "/muster-", ToAbsl(service));
  if (::access(path.c_str(), X_OK) == 0) return path;
  return errors::ProgramMissing(path);
}

std::string WithValues(std::string text, const ConfigValues& values) {
  std::vector<std::string> lines = absl::StrSplit(absl::StripSuffix(text, "\n"), '\n');
  for (const auto& [key, value] : values) {
    std::string line = absl::StrCat(key, ": ", value);
    auto found = lines.begin();
    while (found != lines.end() && !IsLineOf(*found, key)) ++found;
    if (found == lines.end()) {
      lines.push_back(std::move(line));
      continue;
    }
    *found = std::move(line);
    // Remove the lines of a list or map that belong to the key, and the empty ones between them.
    const auto begin = found + 1;
    auto end = begin;
    for (auto next = begin; next != lines.end(); ++next) {
      if (absl::StartsWith(*next, "  ") || absl::StartsWith(*next, "- ")) {
        end = next + 1;
      } else if (!next->empty()) {
        break;
      }
    }
    lines.erase(begin, end);
  }
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

std::string YamlText(std::string_view text) {
  // Every JSON string is a YAML string.
  return nlohmann::json(std::string(text)).dump();
}

std::string YamlList(const std::vector<std::string>& list) { return nlohmann::json(list).dump(); }

absl::Status WriteConfig(const Home& home, std::string_view service, const ConfigValues& defaults,
                         const ConfigValues& chosen) {
  const std::string file = ConfigFile(home, service);
  absl::StatusOr<std::string> text = ReadFileBounded(file, kMaxConfig);
  const bool is_new = absl::IsNotFound(text.status());
  if (is_new) {
    text = PrintConfig(service);
    if (text.ok()) text = WithValues(*text, defaults);
  }
  if (!text.ok()) return text.status();
  const std::string wanted = chosen.empty() ? *text : WithValues(*text, chosen);
  if (!is_new && wanted == *text) return absl::OkStatus();
  return WriteFileAtomically(file, wanted);
}

absl::StatusOr<bool> HasConfigValues(const Home& home, std::string_view service,
                                     const ConfigValues& chosen) {
  ASSIGN_OR_RETURN(const std::string text, ReadFileBounded(ConfigFile(home, service), kMaxConfig));
  return WithValues(text, chosen) == text;
}

absl::StatusOr<std::string> ConfigValue(const Home& home, std::string_view service,
                                        const std::string& key) {
  ASSIGN_OR_RETURN(const YAML::Node node, Load(ConfigFile(home, service)));
  const YAML::Node value = node[key];
  return value.IsDefined() && value.IsScalar() ? value.Scalar() : "";
}

absl::StatusOr<std::vector<std::string>> ConfigList(const Home& home, std::string_view service,
                                                    const std::string& key) {
  ASSIGN_OR_RETURN(const YAML::Node node, Load(ConfigFile(home, service)));
  std::vector<std::string> list;
  for (const YAML::Node& item : node[key]) {
    if (item.IsScalar()) list.push_back(item.Scalar());
  }
  return list;
}

absl::StatusOr<std::optional<HostPort>> ListenAddress(const Home& home, std::string_view service) {
  ASSIGN_OR_RETURN(const std::string text, ConfigValue(home, service, "listen"));
  if (text.empty()) return std::nullopt;
  const std::optional<HostPort> address = ParseHostPort(text);
  if (!address) {
    return errors::InvalidServiceConfig(ConfigFile(home, service),
                                        absl::StrCat("listen: \"", text, "\" is not HOST:PORT"));
  }
  return address;
}

std::map<std::string, std::string> ReadAddresses(const Home& home, std::string_view service) {
  std::map<std::string, std::string> addresses;
  const auto text = ReadFileBounded(AddressesFile(home, service), kMaxConfig);
  if (!text.ok()) return addresses;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return addresses;
  for (const auto& [name, value] : json.items()) {
    if (value.is_string()) addresses[name] = value.get<std::string>();
  }
  return addresses;
}

std::string AddressName(std::string_view service, const std::string& name) {
  return name == service ? name : absl::StrCat(ToAbsl(service), "_", name);
}

absl::Status CheckReady(const std::string& inspection_address) {
  httplib::Client client(absl::StrCat("http://", inspection_address));
  client.set_connection_timeout(1);
  client.set_read_timeout(2);
  const httplib::Result answer = client.Get("/readyz");
  if (!answer) {
    return absl::UnavailableError(answer.error() == httplib::Error::Connection
                                      ? "the service accepts no connection"
                                      : "the service accepts connections but does not answer");
  }
  if (answer->status == 200) return absl::OkStatus();
  return absl::UnavailableError(std::string(absl::StripTrailingAsciiWhitespace(answer->body)));
}

}  // namespace muster::supervisor
