#include "services/relay/upstream/parent_link.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/runs/run_offers.h"
#include "services/relay/topology/child_session.h"

namespace muster {
namespace {

constexpr size_t kMaxDescendants = 500;  // in one message

// The limit on one message of records (jobs.proto), and the time for which they are collected.
// Enough bytes are worth a message: their node sends the next ones only when these were sent.
constexpr size_t kMaxRecordsBytes = 256 * 1024;
constexpr size_t kEnoughBytes = 32 * 1024;
constexpr absl::Duration kBatchWithin = absl::Milliseconds(10);

// Returns whether a parent refuses this relay because it was revoked. A refusal before the handler
// of the call has its reason in the message.
bool IsRevocation(const absl::Status& why) {
  const std::string reason = ReasonOf(why);
  return reason == "IDENTITY_REVOKED" || reason == "REVOKED" ||
         (absl::IsPermissionDenied(why) && absl::StartsWith(why.message(), "REVOKED: "));
}

}  // namespace

ParentLink::ParentLink(AttachClientOptions options, const Parts& parts, absl::Duration interval,
                       HandleShares handle_shares, std::unique_ptr<ParentConnector> connector)
    : UpstreamBase(parts.topology),
      parts_(parts),
      interval_(interval),
      handle_shares_(std::move(handle_shares)),
      client_(std::move(options), *this, parts.runtime, std::move(connector)),
      flush_(parts.runtime.timers, parts.runtime.executor, [this] { Flush(); }) {
  client_.Start();
}

ParentLink::~ParentLink() {
  flush_.Stop();
  client_.Stop();
  DropRecords();
}

void ParentLink::SetConnected(bool connected) {
  connected_ = connected;
  NotifyListeners();
}

absl::Status ParentLink::OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) {
  std::vector<std::string> path(welcome.path().begin(), welcome.path().end());
  if (std::find(path.begin(), path.end(), parts_.topology.name()) != path.end()) {
    return errors::RelayLoop(parts_.topology.name(), path.back());
  }
  if (path.size() >= kMaxDepth) return errors::RelayTooDeep(parts_.topology.name(), kMaxDepth);
  if (welcome.has_clock()) {
    MutexLock lock(transit_mutex_);
    transit_.Welcome(FromProto(welcome.clock()), parts_.runtime.clock.MonotonicNow(), first);
  }
  revoked_ = false;
  if (first) parts_.trust.DropPartialList();
  if (first && !path.empty()) {
    Log(LogLevel::kInfo, "attached to " + path.back(),
        {{"path", absl::StrJoin(path, "/")}, {"connected", welcome.connected()}});
  }
  path.push_back(parts_.topology.name());
  parts_.topology.SetPath(std::move(path));
  if (first) {
    MutexLock lock(changes_mutex_);
    welcomed_ = true;
    send_all_ = true;
    complete_ = false;
    unsent_changes_.reset();
  }
  {
    MutexLock lock(ended_mutex_);
    ended_runs_.clear();
    for (const std::string& run : welcome.ended_runs()) {
      if (IsRunId(run) && ended_runs_.size() < kMaxEndedRuns) ended_runs_.push_back(run);
    }
  }
  SetConnected(welcome.connected());
  // Messages in flight may be lost: a welcome makes the children send them again.
  for (const auto& child : parts_.topology.Children()) {
    SendWelcome(*child, parts_.topology, *this, interval_, parts_.runtime.clock);
  }
  return absl::OkStatus();
}

absl::Status ParentLink::OnMessage(v1::AttachResponse message) {
  switch (message.message_case()) {
    case v1::AttachResponse::kCommand:
      Dispatch(std::move(*message.mutable_command()));
      break;
    case v1::AttachResponse::kCancel:
      parts_.dispatcher.Cancel(message.cancel());
      break;
    case v1::AttachResponse::kRecordsAck:
      parts_.dispatcher.SendAcks(message.records_ack());
      break;
    case v1::AttachResponse::kRevocations:
      return parts_.trust.HandleCommandRevocations(message.revocations(), parts_.command_ca);
    case v1::AttachResponse::kRevoked:
      return parts_.trust.HandleRevoked(message.revoked());
    case v1::AttachResponse::kShares:
    case v1::AttachResponse::kShareQuery:
      handle_shares_(message);
      break;
    case v1::AttachResponse::kCollection:
      HandleOffer(message.collection());
      break;
    case v1::AttachResponse::kCollectionEnded:
      HandleCollectionEnded(message);
      break;
    default:
      break;
  }
  return absl::OkStatus();
}

void ParentLink::HandleOffer(const v1::CollectionOffer& offer) {
  if (!offer.redelivery()) {
    MutexLock lock(ended_mutex_);
    std::erase(ended_runs_, offer.run());  // the aggregator was restored from a backup
  }
  SendOffer(parts_.topology, offer);
}

// Remembers the run for the children that are disconnected now.
void ParentLink::HandleCollectionEnded(const v1::AttachResponse& message) {
  const v1::CollectionEnded& ended = message.collection_ended();
  if (!IsRunId(ended.run())) return;
  if (ended.nodes().empty()) {
    MutexLock lock(ended_mutex_);
    std::erase(ended_runs_, ended.run());
    ended_runs_.push_back(ended.run());
    if (ended_runs_.size() > kMaxEndedRuns) ended_runs_.erase(ended_runs_.begin());
  }
  for (const auto& child : parts_.topology.Children()) child->Send(message);
}

std::vector<std::string> ParentLink::ended_runs() const {
  MutexLock lock(ended_mutex_);
  return ended_runs_;
}

void ParentLink::Dispatch(v1::JobCommand command) {
  {
    MutexLock lock(transit_mutex_);
    transit_.Adjust(parts_.runtime.clock.MonotonicNow(), &command);
  }
  parts_.dispatcher.Dispatch(std::move(command));
}

void ParentLink::OnLost(const absl::Status& why) {
  SetConnected(false);
  {
    MutexLock lock(changes_mutex_);
    welcomed_ = false;
  }
  DropRecords();
  HandleRefusal(why);
}

void ParentLink::OnRefused(const absl::Status& why) { HandleRefusal(why); }

// The branch of a revoked relay is not reachable through it: its children attach elsewhere.
void ParentLink::HandleRefusal(const absl::Status& why) {
  if (!IsRevocation(why)) return;
  revoked_ = true;
  for (const auto& child : parts_.topology.Children()) child->End(MayAttach());
}

absl::Status ParentLink::JobsUnreachable() const { return errors::RelayCutOff(); }

absl::Status ParentLink::MayAttach() const {
  return revoked_ ? errors::RelayRevoked(parts_.topology.name()) : absl::OkStatus();
}

void ParentLink::DropRecords() {
  std::vector<Done> dropped;
  {
    MutexLock lock(records_mutex_);
    dropped = std::exchange(batch_accepted_, {});
    batch_.Clear();
    batch_bytes_ = 0;
    for (auto& [message, done] : waiting_) {
      std::move(done.begin(), done.end(), std::back_inserter(dropped));
    }
    waiting_.clear();
  }
  for (Done& done : dropped) done();
}

// Without a parent the records are dropped: they are not acked, and the child sends them again. A
// single record is sent immediately. Records that arrive together are sent together, because each
// message costs this relay and all of its ancestors more than its records.
void ParentLink::Receive(v1::JobRecords records, Done done) {
  parts_.dispatcher.HandleRecords(records);
  std::vector<Done> sent;
  {
    MutexLock lock(records_mutex_);
    if (!client_.attached()) {
      sent.push_back(std::move(done));
    } else {
      const size_t bytes = records.ByteSizeLong();
      if (batch_bytes_ + bytes > kMaxRecordsBytes) SendBatch(sent);
      batch_bytes_ += bytes;
      for (v1::JobRecord& record : *records.mutable_records()) {
        *batch_.add_records() = std::move(record);
      }
      batch_accepted_.push_back(std::move(done));
      if (batch_bytes_ >= kEnoughBytes ||
          parts_.runtime.clock.MonotonicNow() - sent_at_ > kBatchWithin) {
        SendBatch(sent);
      } else if (batch_accepted_.size() == 1) {
        flush_.RunAfter(kBatchWithin);
      }
    }
  }
  for (Done& call : sent) call();
}

// Adds the callbacks of sent records to `sent`. Topology changes are sent first, because the root
// relay needs a route for the acks.
void ParentLink::SendBatch(std::vector<Done>& sent) {
  if (batch_accepted_.empty()) return;
  sent_at_ = parts_.runtime.clock.MonotonicNow();
  batch_bytes_ = 0;
  v1::AttachRequest message;
  *message.mutable_records() = std::exchange(batch_, {});
  std::vector<Done> done = std::exchange(batch_accepted_, {});
  const bool waits = !waiting_.empty() || !SendChanges() || !client_.Send(message);
  if (waits && client_.attached()) {
    waiting_.emplace_back(std::move(message), std::move(done));
  } else {
    std::move(done.begin(), done.end(), std::back_inserter(sent));
  }
}

void ParentLink::Flush() {
  std::vector<Done> sent;
  {
    MutexLock lock(records_mutex_);
    SendBatch(sent);
  }
  for (Done& call : sent) call();
}

void ParentLink::OnWritable() {
  std::vector<Done> done;
  {
    MutexLock lock(records_mutex_);
    while (!waiting_.empty() && SendChanges() && client_.Send(waiting_.front().first)) {
      std::move(waiting_.front().second.begin(), waiting_.front().second.end(),
                std::back_inserter(done));
      waiting_.pop_front();
    }
  }
  for (Done& call : done) call();
}

void ParentLink::Tick() {
  SendChanges();
  OnWritable();
}

// Returns false if a change could not be sent.
bool ParentLink::SendChanges() {
  MutexLock lock(changes_mutex_);
  while (welcomed_ && client_.attached()) {
    if (!unsent_changes_) {
      if (!send_all_ && complete_ && !parts_.topology.HasChanges()) return true;
      v1::AttachRequest& message = unsent_changes_.emplace();
      *message.mutable_topology() =
          parts_.topology.DequeueChanges(kMaxDescendants, std::exchange(send_all_, false));
      if (!complete_ && !parts_.topology.HasChanges()) {
        message.mutable_topology()->set_complete(true);
        complete_ = true;
      }
    }
    if (!client_.Send(*unsent_changes_)) return false;
    unsent_changes_.reset();
  }
  return false;
}

}  // namespace muster
