#include "services/common/attach/attach_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/random/random.h"
#include "services/common/attach/attach_stream.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/rpc/channel.h"

namespace muster {
namespace {

constexpr absl::Duration kLeastWait = absl::Seconds(1);
// A stream that lasted so long was a good one: the wait after it begins small again.
constexpr absl::Duration kSettled = absl::Seconds(3);

absl::Duration Now() { return SystemClock().MonotonicNow(); }

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

// With the lock held: a reaction that sends must not be the last to let go of the stream.
bool AttachClient::Send(v1::AttachRequest message) {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->Send(std::move(message));
}

bool AttachClient::attached() const {
  MutexLock lock(mutex_);
  return stream_ != nullptr && stream_->welcomed();
}

std::string AttachClient::target() const { return Newest().target; }

std::shared_ptr<grpc::Channel> AttachClient::channel() const { return Newest().channel; }

// The parent that welcomed last: one that is only tried leads nowhere yet.
AttachClient::Parent AttachClient::Newest() const {
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

AttachClient::Parent AttachClient::Reach(size_t index) const {
  const std::string& target = options_.targets[index];
  return {index, target,
          MakeChannel(target,
                      MakeChannelCredentials(
                          ChannelIdentityFolder{options_.fleet, options_.identity_folder},
                          {ServiceRole::kRelay}),
                      /*own_connection=*/true),
          nullptr};
}

// Holds to a parent, and to those that it is left for, until there is none.
absl::Status AttachClient::Hold(const std::stop_token& stop, Parent& parent) {
  parent.stream = std::make_shared<AttachStream>(options_, delegate_, instance_);
  SetParent(parent);
  parent.stream->Start(parent.channel);
  absl::Duration look_at = NextLook();
  std::optional<absl::Status> end;
  while (!(end = parent.stream->AwaitEnd(parent.stream->tick()))) {
    AttachStream& stream = *parent.stream;
    if (stop.stop_requested()) {
      stream.End(absl::CancelledError("this program stops"));
      continue;
    }
    stream.Tick();
    Newest();
    if (parent.index == 0 || !stream.welcomed() || Now() < look_at) continue;
    look_at = NextLook();
    Parent earlier = FindEarlier(stop, stream, parent.index);
    if (earlier.stream == nullptr) continue;
    const absl::Status why = absl::CancelledError("a parent that is preferred is there again");
    stream.End(why);
    while (!stream.AwaitEnd(kLeastWait)) {
    }
    delegate_.OnLost(why);
    parent = std::move(earlier);
    SetParent(parent);
    parent.stream->Adopt();
    Log(LogLevel::kInfo, "went over to a parent that is preferred", {{"relay", parent.target}});
  }
  SetParent({});
  return *end;
}

// In a random while, so that those who lost a parent together do not come back together.
absl::Duration AttachClient::NextLook() const {
  absl::BitGen random;
  return Now() + absl::Uniform(random, 1.0, 3.0) * options_.return_after;
}

// One of those that are preferred to the parent at `index`, welcomed aside; without a stream if
// none of them takes this child. `now` goes on meanwhile.
AttachClient::Parent AttachClient::FindEarlier(const std::stop_token& stop, AttachStream& now,
                                               size_t index) const {
  for (size_t i = 0; i < index; ++i) {
    Parent earlier = Reach(i);
    earlier.stream = std::make_shared<AttachStream>(options_, delegate_, instance_, now.relay());
    earlier.stream->Start(earlier.channel);
    std::optional<absl::Status> answer;
    while (!(answer = earlier.stream->AwaitOffer(now.tick()))) {
      now.Tick();
      earlier.stream->Tick();
      if (stop.stop_requested() || !now.welcomed()) {
        earlier.stream->End(absl::CancelledError("there is nothing to be left any more"));
      }
    }
    if (answer->ok()) return earlier;
    Log(LogLevel::kInfo, "stays where it is", {{"preferred", earlier.target}, {"reason", *answer}});
  }
  return {};
}

void AttachClient::Run(const std::stop_token& stop) {
  absl::BitGen random;
  absl::Duration back_off = options_.first_back_off;
  size_t next = 0;
  while (!stop.stop_requested() && !options_.targets.empty()) {
    Parent parent = Reach(next % options_.targets.size());
    const absl::Status end = Hold(stop, parent);
    if (stop.stop_requested()) return;
    Log(LogLevel::kWarning, "not attached", {{"relay", parent.target}, {"reason", end}});
    const auto welcomed_at = parent.stream->welcomed_at();
    if (welcomed_at) delegate_.OnLost(end);
    const bool lasted = welcomed_at && Now() - *welcomed_at > kSettled;
    if (lasted) back_off = options_.first_back_off;
    // After a good one they are tried from the first on; without a wait until all have been.
    next = lasted ? 0 : next + 1;
    if (!lasted && next % options_.targets.size() != 0) continue;
    absl::Duration wait = absl::Uniform(random, 0.0, 1.0) * back_off;
    wait = std::max(wait, RetryAfterOf(end).value_or(kLeastWait));
    back_off = std::min(back_off * 2, options_.longest_back_off);
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, stop, wait, [] { return false; });
  }
}

}  // namespace muster
