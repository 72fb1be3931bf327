#include "services/relay/spool/spool_quota.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

// The cost of an entry besides its bytes: its row and its place in memory.
constexpr int64_t kOverhead = 8 * 1024;

// An upload that did not name its size is charged in such steps.
constexpr int64_t kStep = int64_t{4} << 20;

}  // namespace

SpoolQuota::Usage SpoolQuota::UsageOf(const std::string& node) const {
  const auto it = nodes_.find(node);
  return it == nodes_.end() ? Usage() : it->second;
}

// One node must not fill the spool for the others.
absl::Status SpoolQuota::Check(const Usage& node, int64_t bytes, int64_t entries) const {
  const int64_t node_entries = std::max<int64_t>(1, max_entries_ / 4);
  if (bytes > max_bytes_ - bytes_) {
    return errors::SpoolFull(absl::StrCat("it may hold ", max_bytes_, " bytes"));
  }
  if (bytes > max_bytes_ / 4 - node.bytes) {
    return errors::SpoolFull(absl::StrCat("it may hold ", max_bytes_ / 4, " bytes of one node"));
  }
  if (static_cast<int64_t>(charges_.size()) + entries > max_entries_) {
    return errors::SpoolFull(absl::StrCat("it may hold ", max_entries_, " results"));
  }
  if (node.entries + entries > node_entries) {
    return errors::SpoolFull(absl::StrCat("it may hold ", node_entries, " results of one node"));
  }
  return absl::OkStatus();
}

void SpoolQuota::Apply(Charge& charge, int64_t bytes) {
  const int64_t more = bytes - charge.bytes;
  charge.bytes = bytes;
  nodes_[charge.node].bytes += more;
  bytes_ += more;
}

absl::Status SpoolQuota::Add(const std::string& id, const std::string& node, int64_t bytes) {
  MutexLock lock(mutex_);
  if (bytes > max_bytes_) return errors::SpoolFull("the result is larger than the spool");
  RETURN_IF_ERROR(Check(UsageOf(node), bytes + kOverhead, 1));
  Insert(id, node, bytes);
  return absl::OkStatus();
}

void SpoolQuota::Restore(const std::string& id, const std::string& node, int64_t bytes) {
  MutexLock lock(mutex_);
  Insert(id, node, bytes);
}

void SpoolQuota::Insert(const std::string& id, const std::string& node, int64_t bytes) {
  Charge& charge = charges_[id];
  charge.node = node;
  ++nodes_[node].entries;
  Apply(charge, bytes + kOverhead);
}

absl::Status SpoolQuota::Grow(std::string_view id, int64_t bytes) {
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it == charges_.end()) return errors::UploadNotFound(id);
  Charge& charge = it->second;
  const int64_t wanted = bytes + kOverhead;
  if (wanted <= charge.bytes) return absl::OkStatus();
  const int64_t target = std::max(wanted, charge.bytes + kStep);
  RETURN_IF_ERROR(Check(UsageOf(charge.node), target - charge.bytes, 0));
  Apply(charge, target);
  return absl::OkStatus();
}

void SpoolQuota::Set(std::string_view id, int64_t bytes) {
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it != charges_.end()) Apply(it->second, bytes + kOverhead);
}

void SpoolQuota::Release(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it == charges_.end()) return;
  Apply(it->second, 0);
  const auto node = nodes_.find(it->second.node);
  if (--node->second.entries == 0) nodes_.erase(node);
  charges_.erase(it);
}

SpoolQuota::Usage SpoolQuota::usage() const {
  MutexLock lock(mutex_);
  return {static_cast<int64_t>(charges_.size()), bytes_};
}

}  // namespace muster
