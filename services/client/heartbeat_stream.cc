#include "services/client/heartbeat_stream.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/client/clean_text.h"
#include "services/client/progress_message.h"
#include "services/client/status_channels.h"
#include "services/common/base/mutex.h"
#include "services/common/base/random_id.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/status.h"

namespace muster::client {
namespace {

constexpr size_t kMaxText = 1024;  // of a message
constexpr absl::Duration kGoodbyeLimit = absl::Seconds(2);

// Of the process: two clients in it are one sender.
const std::string& InstanceId() {
  static const auto* const id = new std::string(RandomHex(16));
  return *id;
}

std::string BootId() {
  const auto text = ReadFileBounded("/proc/sys/kernel/random/boot_id", 64);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
}

// A Duration, or a Timestamp as what has passed since 1970.
template <typename SecondsAndNanos>
void ToMessage(absl::Duration duration, SecondsAndNanos* message) {
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
}

template <typename SecondsAndNanos>
absl::Duration ToDuration(const SecondsAndNanos& message) {
  return absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

void ToMessage(const Fault& fault, v1::Fault* message) {
  message->set_check(static_cast<v1::Fault::Check>(fault.check));
  message->set_address(CleanText(fault.address, kMaxText));
  message->set_message(CleanText(fault.message, kMaxText));
  message->set_next_step(CleanText(fault.next_step, kMaxText));
}

void ToMessage(const Activity& activity, const BeatKey& key, v1::Activity* message) {
  message->mutable_key()->set_run(key.run);
  message->mutable_key()->set_plugin(key.plugin);
  message->mutable_key()->set_node(key.node);
  message->set_phase(static_cast<v1::Phase>(activity.phase));
  message->set_message(CleanText(activity.message, kMaxText));
  if (activity.progress) ToMessage(*activity.progress, message->mutable_progress());
  if (activity.fault) ToMessage(*activity.fault, message->mutable_fault());
}

class HeartbeatStream final
    : public BeatConnection,
      private grpc::ClientBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse> {
 public:
  HeartbeatStream(std::shared_ptr<grpc::Channel> channel, BeatKey key, BeatInbox& inbox)
      : stub_(v1::HeartbeatService::NewStub(std::move(channel))),
        key_(std::move(key)),
        inbox_(inbox) {
    request_.set_node(key_.node);
    request_.set_instance_id(InstanceId());
    request_.set_boot_id(BootId());
    stub_->async()->StreamHeartbeats(&context_, this);
    StartRead(&response_);
    StartCall();
  }

  ~HeartbeatStream() override {
    MutexLock lock(mutex_);
    if (goodbye_) {
      ended_.WaitFor(mutex_, kGoodbyeLimit,
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
    }
    if (!done_) context_.TryCancel();
    while (!done_) ended_.Wait(mutex_);
  }

  void Send(const Beat& beat) override {
    MutexLock lock(mutex_);
    if (reads_ended_) return;  // nothing may be started: the end is on its way to the inbox
    if (std::exchange(named_, true)) {  // who beats is said once
      request_.clear_node();
      request_.clear_instance_id();
      request_.clear_boot_id();
    }
    request_.set_sequence(beat.sequence);
    ToMessage(beat.uptime, request_.mutable_uptime());
    ToMessage(beat.time - absl::UnixEpoch(), request_.mutable_time());
    request_.clear_activities();
    if (beat.news) ToMessage(*beat.news, key_, request_.add_activities());
    request_.set_goodbye(beat.goodbye);
    goodbye_ = beat.goodbye;
    // Under the lock: reads_ended_ is not set, so the read under way keeps this object alive.
    if (beat.goodbye) {
      StartWriteLast(&request_, grpc::WriteOptions());
    } else {
      StartWrite(&request_);
    }
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      MutexLock lock(mutex_);
      reads_ended_ = true;
      return;
    }
    BeatAnswer answer;
    answer.sequence = response_.sequence();
    answer.probe = response_.probe();
    if (response_.has_interval()) answer.interval = ToDuration(response_.interval());
    if (response_.has_time()) answer.time = absl::UnixEpoch() + ToDuration(response_.time());
    inbox_.Answered(answer);
    response_.Clear();
    StartRead(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (ok) inbox_.Writable();  // a failed write ends the stream
  }

  void OnDone(const grpc::Status& status) override {
    inbox_.Ended(FromGrpc(status));
    MutexLock lock(mutex_);
    done_ = true;
    ended_.NotifyAll();
  }

  const std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  const BeatKey key_;
  BeatInbox& inbox_;
  grpc::ClientContext context_;
  v1::StreamHeartbeatsRequest request_;    // of the write under way
  v1::StreamHeartbeatsResponse response_;  // of the read under way
  Mutex mutex_;
  CondVar ended_;
  bool named_ ABSL_GUARDED_BY(mutex_) = false;
  bool goodbye_ ABSL_GUARDED_BY(mutex_) = false;
  bool reads_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

BeatDialler MakeStreamDialler(std::shared_ptr<const StatusChannels> channels, BeatKey key) {
  return [channels = std::move(channels), key = std::move(key), next = size_t{0}](
             BeatInbox& inbox, const std::stop_token&) mutable -> std::unique_ptr<BeatConnection> {
    return std::make_unique<HeartbeatStream>(channels->all[next++ % channels->all.size()], key,
                                             inbox);
  };
}

}  // namespace muster::client
