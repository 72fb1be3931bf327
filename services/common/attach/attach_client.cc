#include "services/common/attach/attach_client.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "services/common/attach/parent_connection.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/connection_error.h"
#include "services/common/tunnel/tunnels.h"

namespace muster {
namespace {

constexpr absl::Duration kShortestWait = absl::Seconds(1);
// After an attachment that lasted this long the back-off starts again.
constexpr absl::Duration kSettled = absl::Seconds(3);

// Returns why a tunnel is used, by the fault of the direct connection.
std::string WhyTunnel(const std::string& direct_fault) {
  return direct_fault.empty() ? "it is the configured link" : direct_fault;
}

// Returns the description of a link for the parent; empty for a direct one.
std::string LinkOf(const HostPort& target, const std::string& direct_fault) {
  if (!IsTunnel(target)) return "";
  const std::string tunnel = DescribeTunnel(target);
  return absl::StrCat(tunnel.empty() ? "websocket " + target.ToString() : tunnel, "; ",
                      WhyTunnel(direct_fault));
}

}  // namespace

AttachClient::AttachClient(AttachClientOptions options, AttachDelegate& delegate,
                           const AttachRuntime& runtime)
    : AttachClient(std::move(options), delegate, runtime, nullptr) {}

AttachClient::AttachClient(AttachClientOptions options, AttachDelegate& delegate,
                           const AttachRuntime& runtime, std::unique_ptr<ParentConnector> connector)
    : options_(std::move(options)),
      delegate_(delegate),
      clock_(runtime.clock),
      connector_(connector != nullptr ? std::move(connector)
                                      : MakeParentConnector(options_, runtime.clock)),
      instance_(RandomHex(16)),
      started_(runtime.clock.MonotonicNow()),
      backoff_({.first = options_.first_back_off, .most = options_.longest_back_off}),
      step_(runtime.timers, runtime.executor, [this] { Step(); }) {}

void AttachClient::Start() {
  attempt_at_ = clock_.MonotonicNow();
  if (!options_.targets.empty()) step_.RunNow();
}

void AttachClient::Stop() {
  step_.Stop();
  std::shared_ptr<AttachStream> stream;  // released without the mutex
  {
    MutexLock lock(mutex_);
    stream = std::exchange(stream_, nullptr);
  }
  for (Parent* parent : {&candidate_, &current_}) {
    if (parent->stream == nullptr) continue;
    parent->stream->End(absl::CancelledError("this program stops"));
    parent->stream.reset();
  }
}

// Holds the mutex, so that a callback that sends does not drop the last reference to the stream.
bool AttachClient::Send(v1::AttachRequest message) {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->Send(std::move(message));
}

void AttachClient::ResumeReading() {
  MutexLock lock(mutex_);
  if (stream_ != nullptr) stream_->ResumeReading();
}

bool AttachClient::attached() const {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->welcomed();
}

std::string AttachClient::target() const { return UpdateLast().target; }

std::shared_ptr<grpc::Channel> AttachClient::channel() const { return UpdateLast().channel; }

// Returns the parent that sent the last welcome: an address that did not answer yet serves nothing.
AttachClient::LastParent AttachClient::UpdateLast() const {
  MutexLock lock(mutex_);
  if (stream_ != nullptr && stream_->welcomed()) last_ = trying_;
  return last_;
}

void AttachClient::SetParent(const Parent& parent) {
  std::shared_ptr<AttachStream> old;  // released without the mutex
  MutexLock lock(mutex_);
  old = std::exchange(stream_, parent.stream);
  trying_ = {parent.target, parent.connection.channel};
}

AttachClient::Parent AttachClient::MakeParent(size_t index,
                                              std::optional<std::string> current_relay) const {
  const HostPort& target = options_.targets[index];
  auto stream = std::make_shared<AttachStream>(
      AttachStream::Parts{options_, delegate_, clock_,
                          [&connector = *connector_](const v1::AttachResponse::Greeting& greeting) {
                            return connector.Sign(greeting);
                          },
                          instance_, started_, [&step = step_] { step.RunNow(); },
                          [target, why = direct_fault_] { return LinkOf(target, why); }},
      std::move(current_relay));
  return {index, target.ToString(), connector_->Connect(target), std::move(stream)};
}

void AttachClient::Step() {
  if (current_.stream != nullptr) Watch();
  if (current_.stream == nullptr && clock_.MonotonicNow() >= attempt_at_) Attach();
  step_.RunAfter(current_.stream == nullptr ? attempt_at_ - clock_.MonotonicNow()
                                            : current_.stream->tick());
}

void AttachClient::Watch() {
  if (const auto end = current_.stream->end()) return HandleEnd(*end);
  UpdateLast();
  current_.stream->Tick();
  StepCandidate();
}

void AttachClient::Attach() {
  const size_t index = next_ % options_.targets.size();
  if (index == 0) direct_fault_.clear();
  if (IsTunnel(options_.targets[index])) {
    Log(LogLevel::kWarning, "attaching through a tunnel",
        {{"tunnel", options_.targets[index].ToString()}, {"reason", WhyTunnel(direct_fault_)}});
  }
  current_ = MakeParent(index, std::nullopt);
  SetParent(current_);
  probe_at_ = NextProbe();
  current_.stream->Start(current_.connection.open);
}

void AttachClient::HandleEnd(const absl::Status& end) {
  const Parent ended = std::exchange(current_, {});
  Parent candidate = std::exchange(candidate_, {});
  // A relay that has welcomed the candidate ends its older stream, which led there by a tunnel.
  const bool taken_over =
      ReasonOf(end) == "TAKEN_OVER" && candidate.stream != nullptr && candidate.stream->offered();
  if (taken_over && !replacing_) replacing_ = end;
  if (const auto why = std::exchange(replacing_, std::nullopt)) {
    delegate_.OnLost(*why);
    return Replace(std::move(candidate));
  }
  SetParent({});
  Log(LogLevel::kWarning, "not attached", {{"relay", ended.target}, {"reason", end}});
  const absl::Duration now = clock_.MonotonicNow();
  const auto welcomed_at = ended.stream->welcomed_at();
  if (welcomed_at) {
    delegate_.OnLost(end);
  } else {
    delegate_.OnRefused(end);
  }
  if (!welcomed_at && !IsTunnel(options_.targets[ended.index]) && AllowsTunnel(end)) {
    direct_fault_ = std::string(end.message());
  }
  const bool misbehaved = ReasonOf(end) == "RELAY_REFUSED";
  const bool lasted = welcomed_at && now - *welcomed_at > kSettled && !misbehaved;
  if (lasted) backoff_.Reset();
  // A younger process has this identity. At another parent this one would compete with it.
  const bool superseded = ReasonOf(end) == "DUPLICATE_AGENT";
  // After a settled attachment the first target is next. There is no wait before all were tried.
  next_ = lasted ? 0 : next_ + (superseded ? 0 : 1);
  SkipTunnels();
  attempt_at_ = now;
  if (!lasted && !superseded && next_ % options_.targets.size() != 0) return;
  attempt_at_ += std::max(backoff_.Next(RetryAfterOf(end)), kShortestWait);
}

// Moves to the next round of targets if only tunnels are left that may not be used.
void AttachClient::SkipTunnels() {
  const size_t size = options_.targets.size();
  while (next_ % size != 0 && direct_fault_.empty() && IsTunnel(options_.targets[next_ % size]) &&
         !IsTunnel(options_.targets.front())) {
    ++next_;
  }
}

// Attaches to a candidate after the previous stream has ended.
void AttachClient::Replace(Parent preferred) {
  current_ = std::move(preferred);
  SetParent(current_);
  current_.stream->Adopt();
  if (const auto end = current_.stream->end()) return HandleEnd(*end);
  Log(LogLevel::kInfo, "attached to a preferred parent", {{"relay", current_.target}});
}

// Returns a random time, so that children that lost a parent together do not return together.
absl::Duration AttachClient::NextProbe() const {
  absl::BitGen random;
  return clock_.MonotonicNow() + absl::Uniform(random, 1.0, 3.0) * options_.return_after;
}

// Probes the parents before the current one, one after another, until one makes an offer.
void AttachClient::StepCandidate() {
  if (replacing_) return;
  if (!current_.stream->welcomed()) {
    candidate_ = {};
    return;
  }
  if (candidate_.stream == nullptr) {
    if (current_.index == 0 || clock_.MonotonicNow() < probe_at_) return;
    probe_at_ = NextProbe();
    return Probe(0);
  }
  if (candidate_.stream->offered()) {
    replacing_ = absl::CancelledError("a preferred parent is available again");
    return current_.stream->End(*replacing_);
  }
  const auto end = candidate_.stream->end();
  if (!end) return candidate_.stream->Tick();
  Log(LogLevel::kInfo, "a preferred parent does not accept this child",
      {{"preferred", candidate_.target}, {"reason", *end}});
  const size_t next = candidate_.index + 1;
  candidate_ = {};
  if (next < current_.index) Probe(next);
}

void AttachClient::Probe(size_t index) {
  // Behind a tunnel is the same relay, at a worse address.
  const bool from_tunnel =
      IsTunnel(options_.targets[current_.index]) && !IsTunnel(options_.targets[index]);
  candidate_ = MakeParent(index, from_tunnel ? std::string() : current_.stream->relay());
  candidate_.stream->Start(candidate_.connection.open);
}

}  // namespace muster
