// Contents of the jobs service, read through the relay to which this node is attached.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_RELAY_CONTENT_SOURCE_H_
#define MUSTER_SERVICES_AGENT_ATTACH_RELAY_CONTENT_SOURCE_H_

#include <string>

#include "services/agent/jobs/content_fetcher.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/service_channel.h"

namespace muster {

// At most kMaxReads calls are in progress, fewer than a relay admits for a node; others wait.
// Thread-safe.
class RelayContentSource final : public ContentSource {
 public:
  static constexpr int kMaxReads = 3;

  // `channel` returns null before the first attachment.
  explicit RelayContentSource(GetChannel channel) : channel_(std::move(channel)) {}

  absl::StatusOr<std::string> Read(const std::string& deployment, const std::string& sha256,
                                   int64_t offset, absl::FunctionRef<bool()> stopped) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const GetChannel channel_;
  Mutex mutex_;
  CondVar released_;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_RELAY_CONTENT_SOURCE_H_
