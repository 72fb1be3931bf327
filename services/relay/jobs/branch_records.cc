#include "services/relay/jobs/branch_records.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "services/common/base/names.h"
#include "services/common/base/utc_text.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/record_size.h"

namespace muster {
namespace {

// A node whose stream ended may attach again within this time.
constexpr absl::Duration kLostAfter = absl::Seconds(3);
// The same after a restart of this relay, when all nodes have to attach.
constexpr absl::Duration kLostAfterRestart = absl::Seconds(10);

constexpr size_t kNodesNamed = 10;

v1::JobRecord::Branch Branch(bool lost, size_t waiting, std::string detail) {
  v1::JobRecord::Branch branch;
  branch.set_lost(lost);
  branch.set_waiting(static_cast<int64_t>(waiting));
  branch.set_detail(std::move(detail));
  return branch;
}

}  // namespace

void BranchRecords::Replay(const v1::JobRecord& record) {
  (record.branch().relay().empty() ? node_bytes_ : relay_bytes_) += SizeInLog(record);
}

void BranchRecords::Add(v1::JobRecord::Branch branch, absl::Time now,
                        std::vector<v1::JobRecord>& records) {
  if ((branch.relay().empty() ? node_bytes_ : relay_bytes_) > kMaxBytes / 2) return;
  v1::JobRecord& record = records.emplace_back();
  record.set_job(job_);
  ToProto(now, record.mutable_time());
  *record.mutable_branch() = std::move(branch);
  Replay(record);
}

std::vector<v1::JobRecord> BranchRecords::OfRelays(const std::map<std::string, bool>& relays,
                                                   const std::map<std::string, int64_t>& waiting,
                                                   absl::Time now) {
  std::vector<v1::JobRecord> made;
  for (const auto& [relay, attached] : relays) {
    const auto open = waiting.find(relay);
    if (open == waiting.end()) continue;
    v1::JobRecord::Branch branch =
        Branch(!attached, static_cast<size_t>(open->second),
               attached ? absl::StrCat("relay ", relay, " is attached again")
                        : absl::StrCat("relay ", relay, " is not attached any more; ", open->second,
                                       open->second == 1 ? " of its nodes has not finished"
                                                         : " of its nodes have not finished"));
    branch.set_relay(relay);
    Add(std::move(branch), now, made);
  }
  return made;
}

std::vector<v1::JobRecord> BranchRecords::OfNodes(const std::vector<Running>& running,
                                                  absl::Time now, const TargetRoutes& routes) {
  first_look_ = std::min(first_look_, now);
  std::vector<std::string> lost;
  std::vector<std::string> back;
  absl::Time end = absl::InfinitePast();
  for (const Running& one : running) {
    const auto [attached, since] = routes.Find(one.node);
    if (attached) {
      if (lost_.erase(one.node) > 0) back.push_back(one.node);
      continue;
    }
    if (now < since + kLostAfter || (resumed_ && now < first_look_ + kLostAfterRestart)) continue;
    if (lost_.contains(one.node) || losses_[one.node] >= kMaxLosses) continue;
    ++losses_[one.node];
    lost_.insert(one.node);
    lost.push_back(one.node);
    end = std::max(end, one.end);
  }
  std::vector<v1::JobRecord> made;
  if (!lost.empty()) {
    const std::string until = UtcText(end);
    Add(Branch(/*lost=*/true, lost.size(),
               absl::StrCat(
                   "not attached any more while the command runs: ", ListNames(lost, kNodesNamed),
                   "; without a report, timed out at ", until)),
        now, made);
  }
  if (!back.empty()) {
    Add(Branch(/*lost=*/false, back.size(),
               absl::StrCat("attached again: ", ListNames(back, kNodesNamed))),
        now, made);
  }
  return made;
}

}  // namespace muster
