#include "services/aggregator/uploads/upload_quota.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

constexpr int64_t kStep = int64_t{16} << 20;

// Every sender and run may stage this much: on a small disk DISK_FULL is the better answer.
constexpr int64_t kLeastShare = int64_t{64} << 20;

// Many machines deliver with the credential of a relay, or of a plugin on any node.
bool IsOneMachine(const Identity& identity) {
  const Role role = RoleOf(identity);
  return role == Role::kNode || role == Role::kRunNode;
}

int64_t HalfOf(int64_t limit) { return std::max<int64_t>(limit / 2, 1); }

// Rounded up, so that small limits permit what they state.
int64_t ThreeQuartersOf(int64_t limit) { return limit - limit / 4; }

void AddTo(std::map<std::string, int64_t>& sums, const std::string& owner, int64_t more) {
  const auto sum = sums.try_emplace(owner, 0).first;
  sum->second += more;
  if (sum->second == 0) sums.erase(sum);
}

int64_t Sum(const std::map<std::string, int64_t>& sums, const std::string& owner) {
  const auto sum = sums.find(owner);
  return sum == sums.end() ? 0 : sum->second;
}

absl::Status CheckShare(std::string_view owner, int64_t bytes, int64_t limit,
                        std::string_view key) {
  return bytes <= limit ? absl::OkStatus() : errors::TooManyStagedBytes(owner, limit, key);
}

}  // namespace

absl::StatusOr<UploadQuota::SessionTicket> UploadQuota::ReserveSession(const Identity& opener,
                                                                       const std::string& run) {
  int64_t of_identity = HalfOf(limits_.max_uploads);
  if (IsOneMachine(opener)) of_identity = std::min(of_identity, kUploadsOfNode);
  const std::string uri = ToUri(opener).value_or("");
  SessionTicket ticket;
  switch (sessions_.Reserve(uri, 1, {.in_all = limits_.max_uploads, .of_caller = of_identity},
                            &ticket.of_identity)) {
    case CallerQuota::Verdict::kReserved:
      break;
    case CallerQuota::Verdict::kFull:
      return errors::TooManyUploads(limits_.max_uploads);
    case CallerQuota::Verdict::kCallerAtLimit:
      return errors::TooManyUploadsOf(uri, of_identity);
  }
  const int64_t of_run = ThreeQuartersOf(limits_.max_uploads);
  if (sessions_of_runs_.Reserve(run, 1, {.of_caller = of_run}, &ticket.of_run) !=
      CallerQuota::Verdict::kReserved) {
    return errors::TooManyUploadsOf(absl::StrCat("run ", run), of_run);
  }
  return ticket;
}

absl::StatusOr<UploadTicket> UploadQuota::CountStream(const Identity& caller,
                                                      const std::string& run) {
  StreamLimits limits;
  limits.in_all = limits_.max_streams;
  limits.of_caller = IsOneMachine(caller)
                         ? kUploadStreamsOfNode
                         : std::max<int64_t>(kUploadStreamsOfNode, limits_.max_streams / 2);
  ASSIGN_OR_RETURN(const auto uri, ToUri(caller));
  UploadTicket ticket;
  ASSIGN_OR_RETURN(ticket.of_caller, streams_.Enter(kUploadMethod, uri, limits));
  const int64_t of_run = ThreeQuartersOf(limits_.max_streams);
  if (streams_of_runs_.Reserve(run, 1, {.of_caller = of_run}, &ticket.of_run) !=
      CallerQuota::Verdict::kReserved) {
    return errors::TooManyUploadsOf(absl::StrCat("run ", run), of_run);
  }
  return ticket;
}

absl::Status UploadQuota::CheckSize(int64_t size) const {
  const auto limit = static_cast<int64_t>(limits_.max_result_bytes);
  return size > limit ? errors::ResultOverLimit(limit) : absl::OkStatus();
}

void UploadQuota::Add(const UploadRecord& upload) {
  MutexLock lock(mutex_);
  Charge& charge = charges_[upload.id];
  const int64_t bytes = charge.bytes;
  Set(charge, 0);
  charge.identity = upload.delivery.uri;
  charge.run = upload.key.run;
  charge.announced = upload.size;
  Set(charge, bytes);
}

void UploadQuota::Restore(const UploadRecord& upload, int64_t staged) {
  Add(upload);
  MutexLock lock(mutex_);
  Charge& charge = charges_[upload.id];
  charge.size = staged;
  Set(charge, staged);
}

absl::Status UploadQuota::Grow(std::string_view id, int64_t size) {
  RETURN_IF_ERROR(CheckSize(size));
  {
    MutexLock lock(mutex_);
    const auto it = charges_.find(std::string(id));
    if (it == charges_.end()) return errors::UploadNotFound(id);
    if (size <= it->second.bytes) {
      it->second.size = size;
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const int64_t available, blobs_.Available());
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it == charges_.end()) return errors::UploadNotFound(id);
  Charge& charge = it->second;
  // A small result is charged exactly.
  int64_t step = charge.bytes == 0 ? size : charge.bytes + kStep;
  if (charge.announced >= 0) step = std::min(step, charge.announced);
  const int64_t target = std::max(size, step);
  const int64_t more = target - charge.bytes;
  const int64_t all = available + staged_;
  const auto share = [&](int64_t percent) { return std::max(all / 100 * percent, kLeastShare); };
  RETURN_IF_ERROR(CheckShare(charge.identity, Sum(identities_, charge.identity) + more,
                             share(limits_.identity_percent), "limits.identity_disk_percent"));
  RETURN_IF_ERROR(CheckShare(absl::StrCat("run ", charge.run), Sum(runs_, charge.run) + more,
                             share(limits_.run_percent), "limits.run_disk_percent"));
  charge.size = size;
  Set(charge, target);
  return absl::OkStatus();
}

void UploadQuota::Trim(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it != charges_.end()) Set(it->second, it->second.size);
}

void UploadQuota::Set(Charge& charge, int64_t bytes) {
  const int64_t more = bytes - std::exchange(charge.bytes, bytes);
  AddTo(identities_, charge.identity, more);
  AddTo(runs_, charge.run, more);
  staged_ += more;
}

void UploadQuota::Clear(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it == charges_.end()) return;
  it->second.size = 0;
  Set(it->second, 0);
}

void UploadQuota::Remove(std::string_view id) {
  MutexLock lock(mutex_);
  const auto it = charges_.find(std::string(id));
  if (it == charges_.end()) return;
  Set(it->second, 0);
  charges_.erase(it);
}

std::vector<std::string> UploadQuota::OfRun(std::string_view run) const {
  std::vector<std::string> ids;
  MutexLock lock(mutex_);
  for (const auto& [id, charge] : charges_) {
    if (charge.run == run) ids.push_back(id);
  }
  return ids;
}

int64_t UploadQuota::staged() const {
  MutexLock lock(mutex_);
  return staged_;
}

}  // namespace muster
