// The operations of the Docker Engine API that jobs require.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_DOCKER_ENGINE_H_
#define MUSTER_SERVICES_AGENT_DOCKER_DOCKER_ENGINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/docker/engine_transfer.h"
#include "services/agent/docker/registry_credentials.h"
#include "services/common/base/mutex.h"

namespace muster {

// A folder or file of the node in a container.
struct ContainerMount {
  std::string source;  // an absolute path that exists on the node
  std::string target;
  bool read_only = true;
};

struct ContainerSpec {
  std::string name;                      // unique on the node
  std::string image;                     // NAME@sha256:DIGEST, or an id
  std::vector<std::string> command;      // empty: that of the image
  std::vector<std::string> environment;  // NAME=value
  std::string user;                      // empty: that of the image
  std::map<std::string, std::string> labels;
  std::vector<ContainerMount> mounts;
  // Paths of folders in memory, each of 64 MiB, beside /tmp.
  std::vector<std::string> memory_folders;
  std::string network = "none";
  int64_t memory = 0;     // bytes, swap included; 0: no limit
  int64_t nano_cpus = 0;  // 0: no limit
  int64_t processes = 0;  // 0: no limit
  // Bytes of the daemon's log, in kDaemonLogFiles files. More output replaces its beginning.
  int64_t log_size = int64_t{1} << 30;
};

struct ContainerState {
  std::string id;
  std::string status;  // created, running, paused, restarting, removing, exited, dead
  int64_t exit_code = 0;
  // The kernel ended a process of the container, not necessarily the first one.
  bool out_of_memory = false;
  std::string error;  // of the daemon, about the start
  std::optional<absl::Time> started;
  // May be some milliseconds before `started`, which the daemon notes after the program has begun.
  std::optional<absl::Time> finished;
  std::map<std::string, std::string> labels;
  // Bytes of each of the kDaemonLogFiles files of the daemon's log; 0: unknown.
  int64_t log_file_size = 0;

  bool ended() const { return status == "exited" || status == "dead"; }
};

struct ImageInfo {
  std::string name;  // as the daemon knows it: that of a mirror, if it was pulled from there
  std::string id;
  std::vector<std::string> volumes;  // paths at which its containers would write to the disk
  bool has_triggers = false;         // ONBUILD instructions, which a build on top of it executes
};

struct EngineInfo {
  std::string version;         // of the daemon
  std::string cgroup_version;  // "1" or "2"
  std::string storage_driver;
  std::string data_root;
  bool live_restore = false;
};

// The daemon of one socket, with the credentials of registries in a file. Containers of jobs are
// never restarted or removed by the daemon, have a read-only root, no capabilities and no way to
// get more rights. Thread-safe; every call blocks on the daemon, for at most 30 s if it states no
// other limit.
//
// All calls fail with DOCKER_UNREACHABLE, DOCKER_TOO_OLD, DOCKER_FAILED and DOCKER_ANSWER_INVALID.
// Source: Docker Engine API 1.41, https://docs.docker.com/reference/api/engine/version/v1.41.
class DockerEngine {
 public:
  explicit DockerEngine(std::string socket, std::string credentials_file = "")
      : socket_(std::move(socket)), credentials_(std::move(credentials_file)) {}

  const std::string& socket() const { return socket_; }
  // Returns whether a call was answered so far: the node has a daemon.
  bool has_answered() const ABSL_LOCKS_EXCLUDED(mutex_);

  absl::StatusOr<EngineInfo> GetInfo();

  // Returns the version of the daemon. Blocks for at most 10 s, and at most a second after
  // `stopped` returns true.
  absl::StatusOr<std::string> GetVersion(const std::function<bool()>& stopped);

  // NOT_FOUND (IMAGE_NOT_FOUND).
  absl::StatusOr<ImageInfo> FindImage(const std::string& image);

  // Pulls an image from its registry. IMAGE_PULL_FAILED, REGISTRY_CREDENTIALS_UNUSABLE. Blocks for
  // at most `limit`, and at most a second longer than `stopped` returns false.
  absl::Status PullImage(const std::string& image, absl::Duration limit,
                         const std::function<bool()>& stopped);

  // Returns the image, after a pull if the node lacks it: from the mirror of its registry, if the
  // file of the credentials names one. The errors of both.
  absl::StatusOr<ImageInfo> ProvideImage(const std::string& image, absl::Duration limit,
                                         const std::function<bool()>& stopped);

  // Creates a container that is not started, and returns its id. ALREADY_EXISTS (CONTAINER_EXISTS),
  // NOT_FOUND (IMAGE_NOT_FOUND).
  absl::StatusOr<std::string> CreateContainer(const ContainerSpec& spec);

  // CONTAINER_NOT_STARTED if the daemon cannot start its program. After another error the container
  // may run: inspect it.
  absl::Status StartContainer(const std::string& container);

  // Takes a name or an id. NOT_FOUND (CONTAINER_NOT_FOUND).
  absl::StatusOr<ContainerState> InspectContainer(const std::string& container);

  // Returns all containers with this label, ended ones too.
  absl::StatusOr<std::vector<ContainerState>> ListContainers(std::string_view label,
                                                             std::string_view value);

  // Sends a signal to its first process. OK if the container does not run.
  absl::Status SignalContainer(const std::string& container, int signal);

  // Kills and removes a container with its anonymous volumes. OK if there is none.
  absl::Status RemoveContainer(const std::string& container);

  // Returns the path of a call, such as "/v1.41/info" for "/info", for a transfer of the caller.
  absl::StatusOr<std::string> PathOf(std::string_view call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the header of a transfer with the credentials for the registry of an image or
  // repository. REGISTRY_CREDENTIALS_UNUSABLE.
  absl::StatusOr<std::string> AuthHeader(std::string_view image) const;

 private:
  struct Answer {
    long code = 0;  // of HTTP; 0: none
    absl::StatusOr<std::string> body;
  };
  Answer Call(std::string_view method, std::string_view call, std::string body = "");

  const std::string socket_;
  const RegistryCredentials credentials_;
  mutable Mutex mutex_;
  bool has_answered_ ABSL_GUARDED_BY(mutex_) = false;
  std::string version_ ABSL_GUARDED_BY(mutex_);  // "/v1.41"; empty until the daemon has answered
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_DOCKER_ENGINE_H_
