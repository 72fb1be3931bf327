#include "services/simulation/job_watcher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/crash_history.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster::testing {
namespace {

constexpr char kName[] = "operator";

}  // namespace

void JobWatcher::Follow() {
  if (ended_) return;
  if (stream_ == nullptr) Connect();
  while (stream_->source != nullptr) {
    v1::WatchJobResponse response;
    const auto pull = stream_->source->Next(&response);
    if (pull.ok() && *pull == Pull::kWait) return;
    if (!pull.ok()) {
      stream_->connection->Close(Connection::kServer);
      return stream_.reset();
    }
    const bool end = *pull == Pull::kEnd;
    if (end) stream_->source.reset();
    stream_->connection->Send(Connection::kServer, [this, weak = std::weak_ptr(stream_), end,
                                                    response = std::move(response)] {
      if (weak.expired()) return;
      if (!end) return Apply(response);
      ended_ = true;
      stream_->connection->Close(Connection::kClient);
      stream_.reset();
    });
  }
}

void JobWatcher::Connect() {
  stream_ = std::make_shared<Stream>();
  stream_->connection = network_.Connect(kName, root_.name());
  const std::weak_ptr weak = stream_;
  const auto lose = [this, weak] {
    if (!weak.expired()) stream_.reset();
  };
  stream_->connection->OnLost(Connection::kClient, lose);
  stream_->connection->OnLost(Connection::kServer, lose);
  stream_->connection->Send(Connection::kClient, [this, weak] {
    if (const auto stream = weak.lock()) Open(stream);
  });
}

// At the root relay.
void JobWatcher::Open(const std::shared_ptr<Stream>& stream) {
  if (!root_.running()) return stream_.reset();
  v1::WatchJobRequest request;
  request.set_job(job_);
  request.set_position(position_);
  auto source = JobWatchSource::Open(root_.board(), root_.disk, request, [] {});
  if (source.ok()) {
    stream->source = *std::move(source);
    return;
  }
  if (ReasonOf(source.status()) == "INVALID_POSITION") refused_ = source.status();
  stream_.reset();
}

void JobWatcher::Apply(const v1::WatchJobResponse& response) {
  records_.insert(records_.end(), response.records().begin(), response.records().end());
  position_ = response.position();
  if (response.has_job()) state_ = response.job();
}

absl::Status JobWatcher::CheckOutcomes(const std::vector<std::string>& targets) const {
  if (!refused_.ok()) {
    return Broken(absl::StrCat("job ", job_, " is not resumed: ", refused_.ToString()));
  }
  for (const std::string& node : targets) RETURN_IF_ERROR(CheckTarget(node));
  if (!ended_) return absl::OkStatus();
  int64_t outcomes = 0;
  for (const auto& outcome : state_.outcomes()) outcomes += outcome.count();
  if (state_.state() != v1::JOB_STATE_RUNNING && outcomes == static_cast<int64_t>(targets.size())) {
    return absl::OkStatus();
  }
  return Broken(absl::StrCat("job ", job_, " ends in the state ", v1::JobState_Name(state_.state()),
                             " with ", outcomes, " outcomes of ", targets.size()));
}

absl::Status JobWatcher::CheckTarget(const std::string& node) const {
  int of_relay = 0;
  int of_node = 0;
  for (const v1::JobRecord& record : records_) {
    if (record.node() != node) continue;
    const std::string where = absl::StrCat("job ", job_, " on ", node, ": ");
    if (of_node > 0) {
      return Broken(absl::StrCat(where, record.ShortDebugString(), " follows its outcome"));
    }
    if (!record.has_final()) continue;
    if (record.sequence() > 0) ++of_node;
    if (record.sequence() == 0 && ++of_relay > 1) {
      return Broken(absl::StrCat(where, "the root relay has made two outcomes"));
    }
  }
  if (!ended_ || of_relay + of_node > 0) return absl::OkStatus();
  return Broken(absl::StrCat("job ", job_, " has ended without an outcome of ", node));
}

absl::Status JobWatcher::CheckStored(const std::vector<std::string>& stored) const {
  for (size_t i = 0; i < records_.size(); ++i) {
    if (i < stored.size() && records_[i].SerializeAsString() == stored[i]) continue;
    return Broken(
        absl::StrCat("record ", i + 1, " of job ", job_,
                     " is not what a client has received: ", records_[i].ShortDebugString()));
  }
  return absl::OkStatus();
}

}  // namespace muster::testing
