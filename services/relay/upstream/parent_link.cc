#include "services/relay/upstream/parent_link.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "services/common/errors/relay.h"
#include "services/relay/runs/run_offers.h"
#include "services/relay/topology/attach_handler.h"

namespace muster {
namespace {

constexpr size_t kChildrenAtOnce = 500;

// Of one message of records (jobs.proto), and how long they are gathered for one.
constexpr size_t kMaxRecordsBytes = 256 * 1024;
constexpr absl::Duration kGather = absl::Milliseconds(10);

}  // namespace

ParentLink::ParentLink(AttachClientOptions options, Topology& topology, Trust& trust,
                       CommandDispatcher& dispatcher, const Clock& clock, absl::Duration interval,
                       TakeShares shares)
    : UpstreamBase(topology),
      topology_(topology),
      trust_(trust),
      dispatcher_(dispatcher),
      clock_(clock),
      interval_(interval),
      take_shares_(std::move(shares)),
      client_(
          std::make_unique<AttachClient>(std::move(options), static_cast<AttachDelegate&>(*this))) {
  client_->Start();
  gatherer_ = std::jthread([this](const std::stop_token& stop) { Gather(stop); });
}

ParentLink::~ParentLink() {
  gatherer_ = {};  // waits for it
  client_.reset();
  Drop();
}

std::shared_ptr<grpc::Channel> ParentLink::channel() const { return client_->channel(); }

void ParentLink::SetConnected(bool connected) {
  connected_ = connected;
  Changed();
}

absl::Status ParentLink::OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) {
  std::vector<std::string> path(welcome.path().begin(), welcome.path().end());
  if (std::find(path.begin(), path.end(), topology_.name()) != path.end()) {
    return errors::RelayLoop(topology_.name(), path.back());
  }
  if (path.size() >= kMaxDepth) return errors::RelayTooDeep(topology_.name(), kMaxDepth);
  path.push_back(topology_.name());
  topology_.SetPath(std::move(path));
  if (first) {
    MutexLock lock(below_mutex_);
    tell_all_ = true;
    complete_ = false;
    unsent_below_.reset();
  }
  SetConnected(welcome.connected());
  // What was on its way may be lost: those below send it again.
  for (const auto& child : topology_.Children()) {
    SendWelcome(*child, topology_, welcome.connected(), interval_, clock_.Now());
  }
  return absl::OkStatus();
}

void ParentLink::OnMessage(v1::AttachResponse message) {
  switch (message.message_case()) {
    case v1::AttachResponse::kCommand:
      return dispatcher_.Take(std::move(*message.mutable_command()));
    case v1::AttachResponse::kCancel:
      return dispatcher_.Cancel(message.cancel());
    case v1::AttachResponse::kRecordsAck:
      return dispatcher_.Acknowledge(message.records_ack());
    case v1::AttachResponse::kRevocations:
      return trust_.UpdateCommandRevocations(message.revocations());
    case v1::AttachResponse::kRevoked:
      return trust_.HandleRevoked(message.revoked());
    case v1::AttachResponse::kShares:
    case v1::AttachResponse::kShareQuery:
      return take_shares_(message);
    case v1::AttachResponse::kCollection:
      return SendOffer(topology_, message.collection());
    case v1::AttachResponse::kCollectionEnded:
      for (const auto& child : topology_.Children()) child->Send(message);
      return;
    default:
      return;
  }
}

void ParentLink::OnLost(const absl::Status& /*why*/) {
  SetConnected(false);
  Drop();
}

void ParentLink::Drop() {
  std::vector<Taken> dropped;
  {
    MutexLock lock(records_mutex_);
    dropped = std::exchange(gathered_taken_, {});
    gathered_.Clear();
    gathered_bytes_ = 0;
    for (auto& [message, taken] : waiting_) {
      std::move(taken.begin(), taken.end(), std::back_inserter(dropped));
    }
    waiting_.clear();
  }
  for (Taken& taken : dropped) taken();
}

// While there is no way up, what comes is let go of: it is not acknowledged, and comes again.
// Records that come one by one go at once; those that come in a crowd go together, as each message
// costs this relay and all above it more than what it says.
void ParentLink::Take(v1::JobRecords records, Taken taken) {
  std::vector<Taken> sent;
  {
    MutexLock lock(records_mutex_);
    if (!client_->attached()) {
      sent.push_back(std::move(taken));
    } else {
      const size_t bytes = records.ByteSizeLong();
      if (gathered_bytes_ + bytes > kMaxRecordsBytes) SendGathered(sent);
      gathered_bytes_ += bytes;
      for (v1::JobRecord& record : *records.mutable_records()) {
        *gathered_.add_records() = std::move(record);
      }
      gathered_taken_.push_back(std::move(taken));
      if (clock_.MonotonicNow() - sent_at_ > kGather) {
        SendGathered(sent);
      } else {
        gather_.NotifyOne();
      }
    }
  }
  for (Taken& done : sent) done();
}

// Those whose records are on their way are added to `sent`. Whose they are is told before them: an
// acknowledgement that finds no way down is lost, and a node waits for it.
void ParentLink::SendGathered(std::vector<Taken>& sent) {
  if (gathered_taken_.empty()) return;
  sent_at_ = clock_.MonotonicNow();
  gathered_bytes_ = 0;
  v1::AttachRequest message;
  *message.mutable_records() = std::exchange(gathered_, {});
  std::vector<Taken> taken = std::exchange(gathered_taken_, {});
  const bool waits = !waiting_.empty() || !TellChanges() || !client_->Send(message);
  if (waits && client_->attached()) {
    waiting_.emplace_back(std::move(message), std::move(taken));
  } else {
    std::move(taken.begin(), taken.end(), std::back_inserter(sent));
  }
}

void ParentLink::Gather(const std::stop_token& stop) {
  MutexLock lock(records_mutex_);
  while (gather_.Wait(records_mutex_, stop, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(records_mutex_) {
    return !gathered_taken_.empty();
  })) {
    gather_.WaitFor(records_mutex_, stop, kGather, [] { return false; });
    std::vector<Taken> sent;
    SendGathered(sent);
    lock.Unlock();
    for (Taken& done : sent) done();
    lock.Lock();
  }
}

void ParentLink::OnWritable() {
  std::vector<Taken> taken;
  {
    MutexLock lock(records_mutex_);
    while (!waiting_.empty() && TellChanges() && client_->Send(waiting_.front().first)) {
      std::move(waiting_.front().second.begin(), waiting_.front().second.end(),
                std::back_inserter(taken));
      waiting_.pop_front();
    }
  }
  for (Taken& done : taken) done();
}

void ParentLink::CollectionEnded(const v1::CollectionEnded& ended) {
  v1::AttachRequest message;
  *message.mutable_collection_ended() = ended;
  static_cast<void>(client_->Send(std::move(message)));  // advice: the run's end comes down anyway
}

void ParentLink::Tick() {
  TellChanges();
  OnWritable();
}

// False if there is something that cannot be told now.
bool ParentLink::TellChanges() {
  MutexLock lock(below_mutex_);
  while (client_->attached()) {
    if (!unsent_below_) {
      if (!tell_all_ && complete_ && !topology_.HasChanges()) return true;
      v1::AttachRequest& message = unsent_below_.emplace();
      *message.mutable_topology() =
          topology_.TakeChanges(kChildrenAtOnce, std::exchange(tell_all_, false));
      if (!complete_ && !topology_.HasChanges()) {
        message.mutable_topology()->set_complete(true);
        complete_ = true;
      }
    }
    if (!client_->Send(*unsent_below_)) return false;
    unsent_below_.reset();
  }
  return false;
}

}  // namespace muster
