#include "services/agent/attach/node_info.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/log.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/version.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr const char* kDockerVersionFile = "/docker-version";
constexpr size_t kMaxFile = 4096;
constexpr size_t kMaxText = 200;       // the relay limits the whole to 1 KiB
constexpr int64_t kNoticedPart = 100;  // of the disk

std::string Bounded(std::string_view text) {
  return std::string(CutUtf8(CleanUtf8(text), kMaxText));
}

v1::NodeInfo::Adapter ReadDocker(const std::string& path) {
  v1::NodeInfo::Adapter docker;
  const auto text = ReadFileBounded(path, kMaxFile);
  const Json json = text.ok() ? Json::parse(*text, nullptr, false) : Json();
  absl::Time time;
  std::string fault;
  if (!json.is_object() || !json.contains("version") || !json["version"].is_string() ||
      !json.contains("time") || !json["time"].is_string() ||
      !absl::ParseTime(absl::RFC3339_full, json["time"].get<std::string>(), &time, &fault)) {
    return docker;
  }
  docker.set_version(json["version"].get<std::string>());
  ToProto(time, docker.mutable_version_time());
  return docker;
}

absl::Status WriteDocker(const std::string& path, const v1::NodeInfo::Adapter& docker) {
  const Json json = {{"version", docker.version()},
                     {"time", absl::FormatTime(absl::RFC3339_full, FromProto(docker.version_time()),
                                               absl::UTCTimeZone())}};
  return WriteFileAtomically(path, json.dump() + "\n");
}

bool Differs(const v1::NodeInfo& now, const v1::NodeInfo& before) {
  if (now.total_bytes() != before.total_bytes() || now.adapters_size() != before.adapters_size()) {
    return true;
  }
  for (int i = 0; i < now.adapters_size(); ++i) {
    if (now.adapters(i).SerializeAsString() != before.adapters(i).SerializeAsString()) return true;
  }
  return std::abs(now.free_bytes() - before.free_bytes()) * kNoticedPart > now.total_bytes();
}

}  // namespace

NodeInfoWatch::NodeInfoWatch(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      docker_(options_.docker_socket),
      known_docker_(ReadDocker(options_.folder + kDockerVersionFile)),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

std::optional<v1::NodeInfo> NodeInfoWatch::Get() const {
  MutexLock lock(mutex_);
  return info_;
}

void NodeInfoWatch::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    v1::NodeInfo measured = Measure(stop);
    bool changed = false;
    {
      MutexLock lock(mutex_);
      if (stop.stop_requested()) return;  // a call of Docker may have been ended
      changed = !info_ || Differs(measured, *info_);
      if (changed) info_ = std::move(measured);
    }
    if (changed) options_.changed();
    MutexLock lock(mutex_);
    stopped_.WaitFor(mutex_, stop, options_.interval, [] { return false; });
  }
}

v1::NodeInfo NodeInfoWatch::Measure(const std::stop_token& stop) {
  v1::NodeInfo info;
  info.set_version(std::string(kVersion));
  AddDocker(stop, &info);
  info.add_adapters()->set_name("process");
  std::error_code error;
  const auto space = std::filesystem::space(options_.folder, error);
  if (!error) {
    info.set_free_bytes(static_cast<int64_t>(space.available));
    info.set_total_bytes(static_cast<int64_t>(space.capacity));
  }
  ToProto(clock_.Now(), info.mutable_time());
  return info;
}

// A daemon that does not answer has the version that it had.
void NodeInfoWatch::AddDocker(const std::stop_token& stop, v1::NodeInfo* info) {
  const auto version = docker_.GetVersion([&stop] { return stop.stop_requested(); });
  const std::string text = version.ok() ? Bounded(*version) : known_docker_.version();
  if (text != known_docker_.version()) {
    known_docker_.set_version(text);
    ToProto(clock_.Now(), known_docker_.mutable_version_time());
    stored_ = false;
  }
  if (!stored_) {
    const absl::Status written = WriteDocker(options_.folder + kDockerVersionFile, known_docker_);
    stored_ = written.ok();
    if (!stored_) {
      LogLimited(LogLevel::kWarning, "the version of Docker cannot be stored", "docker-version",
                 {{"error", written}});
    }
  }
  v1::NodeInfo::Adapter& docker = *info->add_adapters();
  docker = known_docker_;
  docker.set_name("docker");
  if (!version.ok()) docker.set_problem(Bounded(ToStd(version.status().message())));
}

}  // namespace muster
