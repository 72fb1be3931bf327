#include "services/relay/upstream/root_upstream.h"

#include <grpcpp/client_context.h>

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/client_stream.h"

namespace muster {
namespace {

constexpr absl::Duration kTick = absl::Seconds(1);
constexpr std::chrono::seconds kAnswerWithin(10);
// Repairs a missed list; a revocation in the feed updates the list immediately.
constexpr absl::Duration kBetweenUpdates = absl::Minutes(1);

using RevocationsStream = ClientStream<v1::GetCommandRevocationsRequest, v1::CommandRevocations>;

// Receives the response. Thread-safe.
class ResponseReader final : public RevocationsStream::Handler {
 public:
  // `ended` is called once, on a thread of gRPC; it must not block.
  explicit ResponseReader(std::function<void()> ended) : ended_(std::move(ended)) {}

  void OnStart(const std::shared_ptr<RevocationsStream>& stream) override {
    stream_ = stream;
    stream->ReadNext();
    stream->SendLast({});
  }
  void OnMessage(v1::CommandRevocations list) override {
    list_ = std::move(list);
    stream_->ReadNext();  // the status follows
  }
  void OnEnd(const absl::Status& status, EndedBy) override {
    {
      MutexLock lock(mutex_);
      result_ = status.ok() ? absl::StatusOr<v1::CommandRevocations>(std::move(list_)) : status;
    }
    ended_();
  }

  // Returns the list or the error once the call has ended.
  std::optional<absl::StatusOr<v1::CommandRevocations>> result() const {
    MutexLock lock(mutex_);
    return result_;
  }

 private:
  const std::function<void()> ended_;
  std::shared_ptr<RevocationsStream> stream_;
  v1::CommandRevocations list_;
  mutable Mutex mutex_;
  std::optional<absl::StatusOr<v1::CommandRevocations>> result_ ABSL_GUARDED_BY(mutex_);
};

std::unique_ptr<grpc::ClientContext> ContextWithDeadline() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
  return context;
}

}  // namespace

// One call of GetCommandRevocations. The destructor cancels it and waits for its last callback.
class RootUpstream::RevocationsCall {
 public:
  RevocationsCall(const std::shared_ptr<grpc::Channel>& aggregator, std::function<void()> ended)
      : reader_(std::make_shared<ResponseReader>(std::move(ended))),
        stream_(RevocationsStream::Start(
            aggregator, "/muster.v1.IdentityService/GetCommandRevocations",
            {.first_within = absl::ZeroDuration()}, reader_, {}, ContextWithDeadline())) {}

  std::optional<absl::StatusOr<v1::CommandRevocations>> result() const { return reader_->result(); }

 private:
  const std::shared_ptr<ResponseReader> reader_;
  const StreamOwner<v1::GetCommandRevocationsRequest, v1::CommandRevocations> stream_;
};

// The first event of the feed may request a step before follower_ is set.
RootUpstream::RootUpstream(Topology& topology, Trust& trust, RecordedOperators& operators,
                           RunOffers& offers, RedeliveryRequests& redeliveries, Services services,
                           std::function<void()> signers_known, const Clock& clock,
                           TimerService& timers, Executor& executor)
    : UpstreamBase(topology),
      trust_(trust),
      offers_(offers),
      redeliveries_(redeliveries),
      services_(std::move(services)),
      signers_known_(std::move(signers_known)),
      revocations_([&trust](std::set<std::string> subjects) { trust.Replace(std::move(subjects)); },
                   [&trust](const std::string& subject) { trust.Revoke({subject}); }),
      operators_(operators),
      clock_(clock),
      step_(timers, executor, [this] { Step(); }),
      follower_(std::make_unique<FeedFollower>(
          services_.aggregator,
          [this](const v1::FollowChangesResponse& event) { HandleChange(event); }, timers,
          executor)) {
  started_ = true;
  step_.RunNow();
}

RootUpstream::~RootUpstream() {
  step_.Stop();
  call_.reset();
  follower_.reset();
}

absl::Status RootUpstream::JobsUnreachable() const { return errors::JobsUnreachable(); }

std::optional<Certificate> RootUpstream::command_ca() const {
  MutexLock lock(mutex_);
  return command_ca_;
}

void RootUpstream::HandleChange(const v1::FollowChangesResponse& event) {
  offers_.HandleChange(event, [this] { NotifyListeners(); });
  redeliveries_.HandleChange(event);
  operators_.HandleChange(event);
  if (!revocations_.HandleChange(event)) return;
  if (event.has_snapshot_end()) caught_up_ = true;
  {
    MutexLock lock(mutex_);
    stale_ = true;
  }
  step_.RunNow();
}

// Observes the connection to the aggregator, and keeps the command revocations current.
void RootUpstream::Step() {
  if (!started_) return;
  const bool connected = follower_->connected();
  if (connected_.exchange(connected) != connected) NotifyListeners();
  if (call_ != nullptr) EndCall();
  if (call_ == nullptr && connected) BeginCall();
  step_.RunAfter(kTick);
}

// Requests the list if it may have changed.
void RootUpstream::BeginCall() {
  const absl::Duration now = clock_.MonotonicNow();
  if (now < not_before_) return;
  {
    MutexLock lock(mutex_);
    if (!stale_ && now < update_at_) return;
    stale_ = false;  // a revocation that arrives during the call requires another one
  }
  call_ = std::make_unique<RevocationsCall>(services_.aggregator(), [this] { step_.RunNow(); });
}

// Handles the response once the call has ended. A failed call is repeated at the next tick.
void RootUpstream::EndCall() {
  const auto list = call_->result();
  if (!list) return;
  call_.reset();
  const absl::Status updated = list->ok() ? UpdateCommandRevocations(**list) : list->status();
  if (updated.ok()) {
    update_at_ = clock_.MonotonicNow() + kBetweenUpdates;
    return;
  }
  not_before_ = clock_.MonotonicNow() + kTick;
  {
    MutexLock lock(mutex_);
    stale_ = true;
  }
  Log(LogLevel::kWarning, "cannot get the command revocations", {{"error", updated}});
}

absl::Status RootUpstream::UpdateCommandRevocations(const v1::CommandRevocations& list) {
  ASSIGN_OR_RETURN(auto authority, Certificate::FromPem(list.command_ca_pem()));
  trust_.UpdateCommandRevocations(list);
  {
    MutexLock lock(mutex_);
    command_ca_ = std::move(authority);
  }
  signers_known_();
  return absl::OkStatus();
}

}  // namespace muster
