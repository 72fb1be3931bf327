#include "services/relay/topology/node_info_gate.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"

namespace muster {
namespace {

constexpr absl::Duration kSpacing = absl::Seconds(10);

}  // namespace

absl::Status CheckNodeInfo(const v1::NodeInfo& info) {
  if (info.ByteSizeLong() > kMaxNodeInfo) {
    return errors::InvalidAttachment("the information of a node is larger than 1 KiB");
  }
  if (info.adapters_size() > kMaxAdapters) {
    return errors::InvalidAttachment("a node has more than 4 adapters");
  }
  for (int i = 1; i < info.adapters_size(); ++i) {
    if (info.adapters(i - 1).name() >= info.adapters(i).name()) {
      return errors::InvalidAttachment(
          "the adapters of a node are not in the order of their names");
    }
  }
  if (info.free_bytes() < 0 || info.free_bytes() > info.total_bytes()) {
    return errors::InvalidAttachment("a node has more free space than space");
  }
  return absl::OkStatus();
}

absl::Status NodeInfoGate::Receive(v1::NodeInfo info) {
  RETURN_IF_ERROR(CheckNodeInfo(info));
  auto next = std::make_shared<const v1::NodeInfo>(std::move(info));
  MutexLock lock(mutex_);
  waiting_ = std::move(next);
  return absl::OkStatus();
}

std::shared_ptr<const v1::NodeInfo> NodeInfoGate::DequeueDue() {
  const absl::Duration now = clock_.MonotonicNow();
  MutexLock lock(mutex_);
  if (waiting_ == nullptr || now < next_) return nullptr;
  next_ = now + kSpacing;
  return std::exchange(waiting_, nullptr);
}

}  // namespace muster
