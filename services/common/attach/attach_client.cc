#include "services/common/attach/attach_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/random/random.h"
#include "services/common/attach/parent_connection.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"

namespace muster {
namespace {

constexpr absl::Duration kShortestWait = absl::Seconds(1);
// After an attachment that lasted this long the back-off starts again.
constexpr absl::Duration kSettled = absl::Seconds(3);

}  // namespace

AttachClient::AttachClient(AttachClientOptions options, AttachDelegate& delegate)
    : options_(std::move(options)), delegate_(delegate), instance_(RandomHex(16)) {}

void AttachClient::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

AttachClient::~AttachClient() {
  thread_.request_stop();
  changed_.NotifyAll();
  std::shared_ptr<AttachStream> stream;
  {
    MutexLock lock(mutex_);
    stream = stream_;
  }
  if (stream != nullptr) stream->End(absl::CancelledError("this program stops"));
}

// Holds the mutex, so that a callback that sends does not drop the last reference to the stream.
bool AttachClient::Send(v1::AttachRequest message) {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->Send(std::move(message));
}

bool AttachClient::attached() const {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->welcomed();
}

std::string AttachClient::target() const { return LastParent().target; }

std::shared_ptr<grpc::Channel> AttachClient::channel() const { return LastParent().channel; }

// Returns the parent that sent the last welcome: an address that did not answer yet serves nothing.
AttachClient::Parent AttachClient::LastParent() const {
  MutexLock lock(mutex_);
  if (stream_ != nullptr && stream_->welcomed()) {
    parent_ = trying_;
    parent_.stream = nullptr;
  }
  return parent_;
}

void AttachClient::SetParent(const Parent& parent) {
  MutexLock lock(mutex_);
  stream_ = parent.stream;
  trying_ = parent;
}

AttachClient::Parent AttachClient::MakeParent(size_t index) const {
  const HostPort& target = options_.targets[index];
  return {index, target.ToString(), ConnectToParent(options_, target), nullptr};
}

AttachStream::Parts AttachClient::StreamParts() const {
  return {options_, delegate_, clock_, SignerOf(options_, clock_), instance_};
}

// Stays attached to a parent, and to the preferred ones that replace it, until the stream ends.
absl::Status AttachClient::StayAttached(const std::stop_token& stop, Parent& parent) {
  parent.stream = std::make_shared<AttachStream>(StreamParts());
  SetParent(parent);
  parent.stream->Start(OpenerOn(parent.channel));
  absl::Duration probe_at = NextProbe();
  std::optional<absl::Status> end;
  while (!(end = parent.stream->AwaitEnd(parent.stream->tick()))) {
    AttachStream& stream = *parent.stream;
    if (stop.stop_requested()) {
      stream.End(absl::CancelledError("this program stops"));
      continue;
    }
    stream.Tick();
    LastParent();
    if (parent.index == 0 || !stream.welcomed() || clock_.MonotonicNow() < probe_at) continue;
    probe_at = NextProbe();
    Parent preferred = FindPreferred(stop, stream, parent.index);
    if (preferred.stream == nullptr) continue;
    const absl::Status why = absl::CancelledError("a preferred parent is available again");
    stream.End(why);
    while (!stream.AwaitEnd(kShortestWait)) {
    }
    delegate_.OnLost(why);
    parent = std::move(preferred);
    SetParent(parent);
    parent.stream->Adopt();
    Log(LogLevel::kInfo, "attached to a preferred parent", {{"relay", parent.target}});
  }
  SetParent({});
  return *end;
}

// Returns a random time, so that children that lost a parent together do not return together.
absl::Duration AttachClient::NextProbe() const {
  absl::BitGen random;
  return clock_.MonotonicNow() + absl::Uniform(random, 1.0, 3.0) * options_.return_after;
}

// Returns the first parent before `index` that welcomes this child as a candidate; one without a
// stream if none does. Keeps the `current` stream alive meanwhile.
AttachClient::Parent AttachClient::FindPreferred(const std::stop_token& stop, AttachStream& current,
                                                 size_t index) const {
  for (size_t i = 0; i < index; ++i) {
    Parent preferred = MakeParent(i);
    preferred.stream = std::make_shared<AttachStream>(StreamParts(), current.relay());
    preferred.stream->Start(OpenerOn(preferred.channel));
    std::optional<absl::Status> answer;
    while (!(answer = preferred.stream->AwaitOffer(current.tick()))) {
      current.Tick();
      preferred.stream->Tick();
      if (stop.stop_requested() || !current.welcomed()) {
        preferred.stream->End(absl::CancelledError("the current attachment has ended"));
      }
    }
    if (answer->ok()) return preferred;
    Log(LogLevel::kInfo, "a preferred parent does not accept this child",
        {{"preferred", preferred.target}, {"reason", *answer}});
  }
  return {};
}

void AttachClient::Run(const std::stop_token& stop) {
  absl::BitGen random;
  absl::Duration back_off = options_.first_back_off;
  size_t next = 0;
  while (!stop.stop_requested() && !options_.targets.empty()) {
    Parent parent = MakeParent(next % options_.targets.size());
    const absl::Status end = StayAttached(stop, parent);
    if (stop.stop_requested()) return;
    Log(LogLevel::kWarning, "not attached", {{"relay", parent.target}, {"reason", end}});
    const auto welcomed_at = parent.stream->welcomed_at();
    if (welcomed_at) delegate_.OnLost(end);
    const bool lasted = welcomed_at && clock_.MonotonicNow() - *welcomed_at > kSettled;
    if (lasted) back_off = options_.first_back_off;
    // After a settled attachment the first target is next. There is no wait before all were tried.
    next = lasted ? 0 : next + 1;
    if (!lasted && next % options_.targets.size() != 0) continue;
    absl::Duration wait = absl::Uniform(random, 0.0, 1.0) * back_off;
    wait = std::max(wait, RetryAfterOf(end).value_or(kShortestWait));
    back_off = std::min(back_off * 2, options_.longest_back_off);
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, stop, wait, [] { return false; });
  }
}

}  // namespace muster
