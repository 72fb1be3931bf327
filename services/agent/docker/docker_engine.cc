#include "services/agent/docker/docker_engine.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "services/agent/docker/daemon_log.h"
#include "services/agent/docker/engine_json.h"
#include "services/agent/docker/progress_lines.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"
#include "services/common/rpc/https_handle.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// The versions of the API: the oldest that has what jobs require, and the newest that was tried. A
// daemon serves older versions than its own.
constexpr int kOldestMinor = 40;
constexpr int kNewestMinor = 44;
constexpr absl::Duration kCallLimit = absl::Seconds(30);
constexpr absl::Duration kVersionLimit = absl::Seconds(10);
constexpr size_t kMaxVersionAnswer = size_t{64} << 10;
constexpr int64_t kMemoryFolder = int64_t{64} << 20;
constexpr int kAnyUser = 01777;  // may write to it, as to /tmp

// Returns a time of RFC 3339. Docker writes year 1 for one that has not come.
std::optional<absl::Time> TimeOf(const Json& object, const char* name) {
  absl::Time time;
  std::string fault;
  const auto text = Member<std::string>(object, name, "");
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &fault) || time < absl::UnixEpoch()) {
    return std::nullopt;
  }
  return time;
}

absl::StatusOr<Json> ParseAnswer(std::string_view call, absl::StatusOr<std::string> body) {
  if (!body.ok()) return body.status();
  Json json = Json::parse(*body, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return errors::DockerAnswerInvalid(call, "it is not JSON");
  return json;
}

Json ToJson(const ContainerSpec& spec) {
  Json mounts = Json::array();
  for (const ContainerMount& mount : spec.mounts) {
    mounts.push_back({{"Type", "bind"},
                      {"Source", mount.source},
                      {"Target", mount.target},
                      {"ReadOnly", mount.read_only}});
  }
  std::vector<std::string> memory_folders = spec.memory_folders;
  memory_folders.emplace_back("/tmp");
  for (const std::string& folder : memory_folders) {
    mounts.push_back({{"Type", "tmpfs"},
                      {"Target", folder},
                      {"TmpfsOptions", {{"SizeBytes", kMemoryFolder}, {"Mode", kAnyUser}}}});
  }
  Json json = {
      {"Image", spec.image},
      {"Env", spec.environment},
      {"User", spec.user},
      {"Labels", spec.labels},
      {"Tty", false},
      {"OpenStdin", false},
      {"AttachStdout", true},
      {"AttachStderr", true},
      {"HostConfig",
       {{"Mounts", mounts},
        {"Memory", spec.memory},
        {"MemorySwap", spec.memory},  // no swap
        {"NanoCpus", spec.nano_cpus},
        {"PidsLimit", spec.processes},
        {"NetworkMode", spec.network},
        {"ReadonlyRootfs", true},
        {"CapDrop", {"ALL"}},
        {"SecurityOpt", {"no-new-privileges"}},
        {"Init", true},  // passes signals on and reaps orphans
        {"AutoRemove", false},
        {"RestartPolicy", {{"Name", "no"}}},
        {"LogConfig",
         {{"Type", "local"},
          {"Config",
           {{"max-size", absl::StrCat(spec.log_size / kDaemonLogFiles)},
            {"max-file", absl::StrCat(kDaemonLogFiles)},
            {"compress", "false"}}}}}}},
  };
  if (!spec.command.empty()) json["Cmd"] = spec.command;
  return json;
}

}  // namespace

bool DockerEngine::has_answered() const {
  MutexLock lock(mutex_);
  return has_answered_;
}

absl::StatusOr<std::string> DockerEngine::PathOf(std::string_view call) {
  {
    MutexLock lock(mutex_);
    if (!version_.empty()) return absl::StrCat(version_, ToAbsl(call));
  }
  long code = 0;
  ASSIGN_OR_RETURN(
      const Json json,
      ParseAnswer("GET /version", CallEngine(socket_, {"GET", "/version", ""}, kCallLimit, &code)));
  const auto version = Member<std::string>(json, "ApiVersion", "");
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(version, absl::MaxSplits('.', 1));
  int minor = 0;
  if (parts.first != "1" || !absl::SimpleAtoi(parts.second, &minor)) {
    return errors::DockerAnswerInvalid("GET /version", "ApiVersion is not 1.NUMBER");
  }
  if (minor < kOldestMinor) {
    return errors::DockerTooOld(version, absl::StrCat("1.", kOldestMinor));
  }
  MutexLock lock(mutex_);
  version_ = absl::StrCat("/v1.", std::min(minor, kNewestMinor));
  has_answered_ = true;
  return absl::StrCat(version_, ToAbsl(call));
}

DockerEngine::Answer DockerEngine::Call(std::string_view method, std::string_view call,
                                        std::string body) {
  auto path = PathOf(call);
  if (!path.ok()) return {0, path.status()};
  Answer answer;
  answer.body = CallEngine(socket_, {std::string(method), *std::move(path), std::move(body)},
                           kCallLimit, &answer.code);
  if (answer.code == 0) {  // another version of the daemon may be started
    MutexLock lock(mutex_);
    version_.clear();
  }
  return answer;
}

absl::StatusOr<EngineInfo> DockerEngine::GetInfo() {
  ASSIGN_OR_RETURN(const Json json, ParseAnswer("GET /info", Call("GET", "/info").body));
  EngineInfo info;
  info.version = Member<std::string>(json, "ServerVersion", "");
  info.cgroup_version = Member<std::string>(json, "CgroupVersion", "1");
  info.storage_driver = Member<std::string>(json, "Driver", "");
  info.data_root = Member<std::string>(json, "DockerRootDir", "");
  info.live_restore = Member(json, "LiveRestoreEnabled", false);
  return info;
}

absl::StatusOr<std::string> DockerEngine::GetVersion(const std::function<bool()>& stopped) {
  std::string body;
  EngineTransfer transfer(socket_, {"GET", "/version", ""}, [&](std::string_view piece) {
    if (body.size() + piece.size() > kMaxVersionAnswer) {
      return errors::DockerAnswerInvalid("GET /version", "it is too large");
    }
    body += piece;
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(transfer.Perform(kVersionLimit, stopped));
  ASSIGN_OR_RETURN(const Json json, ParseAnswer("GET /version", std::move(body)));
  auto version = Member<std::string>(json, "Version", "");
  if (version.empty()) return errors::DockerAnswerInvalid("GET /version", "it has no Version");
  return version;
}

absl::StatusOr<ImageInfo> DockerEngine::FindImage(const std::string& image) {
  // The name is a part of the path: its slashes stay.
  Answer answer = Call("GET", absl::StrCat("/images/", image, "/json"));
  if (answer.code == 404) return errors::ImageNotFound(image);
  ASSIGN_OR_RETURN(const Json json, ParseAnswer("GET /images", std::move(answer.body)));
  ImageInfo info{.name = image, .id = Member<std::string>(json, "Id", "")};
  const Json volumes = ObjectIn(ObjectIn(json, "Config"), "Volumes");
  for (const auto& [path, nothing] : volumes.items()) info.volumes.push_back(path);
  info.has_triggers = !TextsIn(ObjectIn(json, "Config"), "OnBuild").empty();
  return info;
}

absl::StatusOr<ImageInfo> DockerEngine::ProvideImage(const std::string& image, absl::Duration limit,
                                                     const std::function<bool()>& stopped) {
  auto found = FindImage(image);
  if (!absl::IsNotFound(found.status()) || image.find('@') == std::string::npos) return found;
  // The digest makes it the same image.
  ASSIGN_OR_RETURN(const std::string name, credentials_.NameInMirror(image));
  if (name != image) {
    found = FindImage(name);
    if (!absl::IsNotFound(found.status())) return found;
  }
  RETURN_IF_ERROR(PullImage(name, limit, stopped));
  return FindImage(name);
}

absl::StatusOr<std::string> DockerEngine::AuthHeader(std::string_view image) const {
  ASSIGN_OR_RETURN(const std::string value, credentials_.HeaderFor(image));
  return absl::StrCat("X-Registry-Auth: ", value);
}

absl::Status DockerEngine::PullImage(const std::string& image, absl::Duration limit,
                                     const std::function<bool()>& stopped) {
  ASSIGN_OR_RETURN(std::string path,
                   PathOf(absl::StrCat("/images/create?fromImage=", UrlEscaped(image))));
  ASSIGN_OR_RETURN(std::string header, AuthHeader(image));
  const absl::Duration start = SystemClock().MonotonicNow();
  ProgressLines lines;
  EngineTransfer transfer(socket_, {"POST", std::move(path), "", {std::move(header)}},
                          [&](std::string_view piece) {
                            lines.Feed(piece);
                            return absl::OkStatus();
                          });
  const absl::Status status = transfer.Perform(limit, stopped);
  if (!lines.failure().empty()) return errors::ImagePullFailed(image, lines.failure());
  if (status.ok()) return status;
  // The daemon has ended; otherwise it waits for the registry.
  const bool given_up = (stopped && stopped()) || SystemClock().MonotonicNow() - start >= limit;
  if (ReasonOf(status) == "DOCKER_UNREACHABLE" && !given_up) return status;
  return errors::ImagePullFailed(image, ToStd(status.message()));
}

absl::StatusOr<std::string> DockerEngine::CreateContainer(const ContainerSpec& spec) {
  Answer answer = Call("POST", absl::StrCat("/containers/create?name=", UrlEscaped(spec.name)),
                       ToJson(spec).dump(-1, ' ', false, Json::error_handler_t::replace));
  if (answer.code == 404) return errors::ImageNotFound(spec.image);
  if (answer.code == 409) return errors::ContainerExists(spec.name);
  ASSIGN_OR_RETURN(const Json json, ParseAnswer("POST /containers/create", std::move(answer.body)));
  auto id = Member<std::string>(json, "Id", "");
  if (id.empty()) return errors::DockerAnswerInvalid("POST /containers/create", "it has no id");
  return id;
}

absl::Status DockerEngine::StartContainer(const std::string& container) {
  Answer answer = Call("POST", absl::StrCat("/containers/", container, "/start"));
  if (answer.code == 404 || answer.code == 400 || answer.code == 500) {
    return errors::ContainerNotStarted(ToStd(answer.body.status().message()));
  }
  return answer.body.status();
}

absl::StatusOr<ContainerState> DockerEngine::InspectContainer(const std::string& container) {
  Answer answer = Call("GET", absl::StrCat("/containers/", container, "/json"));
  if (answer.code == 404) return errors::ContainerNotFound(container);
  ASSIGN_OR_RETURN(const Json json, ParseAnswer("GET /containers", std::move(answer.body)));
  const Json state = ObjectIn(json, "State");
  ContainerState found;
  found.id = Member<std::string>(json, "Id", "");
  found.status = Member<std::string>(state, "Status", "");
  found.exit_code = Member<int64_t>(state, "ExitCode", 0);
  found.out_of_memory = Member(state, "OOMKilled", false);
  found.error = Member<std::string>(state, "Error", "");
  found.started = TimeOf(state, "StartedAt");
  found.finished = TimeOf(state, "FinishedAt");
  found.labels = LabelsIn(ObjectIn(json, "Config"));
  const Json log = ObjectIn(ObjectIn(ObjectIn(json, "HostConfig"), "LogConfig"), "Config");
  if (!absl::SimpleAtoi(Member<std::string>(log, "max-size", ""), &found.log_file_size)) {
    found.log_file_size = 0;
  }
  if (found.id.empty() || found.status.empty()) {
    return errors::DockerAnswerInvalid("GET /containers", "it has no id or state");
  }
  return found;
}

absl::StatusOr<std::vector<ContainerState>> DockerEngine::ListContainers(std::string_view label,
                                                                         std::string_view value) {
  const Json filters = {{"label", {absl::StrCat(ToAbsl(label), "=", ToAbsl(value))}}};
  Answer answer =
      Call("GET", absl::StrCat("/containers/json?all=true&filters=", UrlEscaped(filters.dump())));
  ASSIGN_OR_RETURN(const Json json, ParseAnswer("GET /containers/json", std::move(answer.body)));
  if (!json.is_array()) {
    return errors::DockerAnswerInvalid("GET /containers/json", "it is not a list");
  }
  std::vector<ContainerState> containers;
  for (const Json& entry : json) {
    ContainerState container;
    container.id = Member<std::string>(entry, "Id", "");
    container.status = Member<std::string>(entry, "State", "");
    container.labels = LabelsIn(entry);
    if (!container.id.empty()) containers.push_back(std::move(container));
  }
  return containers;
}

absl::Status DockerEngine::SignalContainer(const std::string& container, int signal) {
  Answer answer = Call("POST", absl::StrCat("/containers/", container, "/kill?signal=", signal));
  if (answer.code == 409) return absl::OkStatus();  // it does not run
  if (answer.code == 404) return errors::ContainerNotFound(container);
  return answer.body.status();
}

absl::Status DockerEngine::RemoveContainer(const std::string& container) {
  Answer answer = Call("DELETE", absl::StrCat("/containers/", container, "?force=true&v=true"));
  if (answer.code == 404) return absl::OkStatus();
  return answer.body.status();
}

}  // namespace muster
