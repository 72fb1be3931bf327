// The information of a node about itself: the adapters that execute its jobs, and its disk.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_NODE_INFO_H_
#define MUSTER_SERVICES_AGENT_ATTACH_NODE_INFO_H_

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/agent/docker/docker_engine.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"

namespace muster {

// Measures on a separate thread, since Docker and the disk may be slow. Remembers in the file
// `docker-version` of the agent's folder since when Docker has its version. Thread-safe.
class NodeInfoWatch {
 public:
  struct Options {
    std::string folder;  // of the agent
    std::string docker_socket;
    // Called on the thread after the first measurement, and after each one that differs: an adapter
    // has changed, or the free space by a hundredth of the disk.
    std::function<void()> changed;
    absl::Duration interval = absl::Minutes(1);
  };

  // `clock` outlives it.
  NodeInfoWatch(Options options, const Clock& clock);
  // The destructor takes little more than a second.

  // Returns the last measurement that differed; nothing before the first.
  std::optional<v1::NodeInfo> Get() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Work(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  v1::NodeInfo Measure(const std::stop_token& stop);
  void AddDocker(const std::stop_token& stop, v1::NodeInfo* info);

  const Options options_;
  const Clock& clock_;
  DockerEngine docker_;
  // Used by the thread: Docker, when it answered last.
  v1::NodeInfo::Adapter known_docker_;
  bool stored_ = true;  // known_docker_ is
  mutable Mutex mutex_;
  StoppableCondVar stopped_;
  std::optional<v1::NodeInfo> info_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_NODE_INFO_H_
