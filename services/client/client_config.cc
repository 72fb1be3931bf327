#include "services/client/client_config.h"

#include <cstdlib>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "services/client/client_status.h"
#include "services/client/config_fields.h"
#include "services/common/base/names.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"

namespace muster::client {
namespace {

constexpr size_t kMaxConfigFile = size_t{1} << 20;

std::optional<Config> Finish(absl::StatusOr<Config> config, Status* status) {
  *status = ToClientStatus(config.status());
  if (!config.ok()) return std::nullopt;
  return *std::move(config);
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  Config config;
  const auto fields = ClientFields(config);
  if (!path.empty()) {
    auto text = ReadFileBounded(path, kMaxConfigFile);
    if (!text.ok()) return errors::ConfigInvalid(path, "", ToStd(text.status().message()));
    RETURN_IF_ERROR(ReadConfigJson(*text, path, fields, AgentOnlyFields()));
  }
  std::set<std::string> set;
  RETURN_IF_ERROR(ReadConfigEnvironment(std::getenv, fields, &set));
  RETURN_IF_ERROR(CompleteConfig(config, set));
  return config;
}

}  // namespace

absl::Status CheckNames(const Config& config) {
  if (config.plugin.empty())
    return errors::ConfigInvalid("configuration", "plugin", "it is missing");
  if (auto status = ValidateName("plugin", config.plugin); !status.ok()) {
    return errors::ConfigInvalid("configuration", "plugin", ToStd(status.message()));
  }
  if (auto status = ValidateName("node", config.node); !status.ok()) {
    return errors::ConfigInvalid("configuration", "node", ToStd(status.message()));
  }
  if (config.grpc_targets.empty() && config.aggregator_url.empty()) {
    return errors::ConfigInvalid("configuration", "grpc_targets",
                                 "either it or aggregator_url is required");
  }
  return absl::OkStatus();
}

std::optional<Config> Config::Load(const std::string& path, Status* status) {
  return Finish(LoadConfig(path), status);
}

std::optional<Config> Config::FromEnvironment(Status* status) {
  return Finish(LoadConfig(""), status);
}

}  // namespace muster::client
