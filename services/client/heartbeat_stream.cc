#include "services/client/heartbeat_stream.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "muster/v1/heartbeats.pb.h"
#include "services/client/clean_text.h"
#include "services/client/progress_message.h"
#include "services/client/status_channels.h"
#include "services/common/base/random_id.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/renewed_channel.h"

namespace muster::client {
namespace {

constexpr size_t kMaxText = 1024;  // limit of a message
constexpr absl::Duration kGoodbyeLimit = absl::Seconds(2);

// Identifies the process: all its clients are one sender.
const std::string& InstanceId() {
  static const auto* const id = new std::string(RandomHex(16));
  return *id;
}

std::string BootId() {
  const auto text = ReadFileBounded("/proc/sys/kernel/random/boot_id", 64);
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : std::string();
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

using BeatStream = ClientStream<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>;

// Passes the messages of a stream to an inbox.
class BeatReader final : public BeatStream::Handler {
 public:
  explicit BeatReader(BeatInbox& inbox) : inbox_(inbox) {}

  void OnStart(const std::shared_ptr<BeatStream>& stream) override {
    stream_ = stream;
    stream->ReadNext();
  }

  void OnMessage(v1::StreamHeartbeatsResponse response) override {
    BeatAnswer answer;
    answer.sequence = response.sequence();
    answer.probe = response.probe();
    if (response.has_interval()) answer.interval = FromProto(response.interval());
    if (response.has_time()) answer.time = FromProto(response.time());
    inbox_.Answered(answer);
    stream_->ReadNext();
  }

  void OnWritable() override { inbox_.Writable(); }
  void OnEnd(const absl::Status& status, EndedBy) override { inbox_.Ended(status); }

 private:
  BeatInbox& inbox_;
  std::shared_ptr<BeatStream> stream_;
};

class HeartbeatStream final : public BeatConnection {
 public:
  HeartbeatStream(RenewedChannel& channel, BeatKey key, BeatInbox& inbox)
      : channel_(channel),
        key_(std::move(key)),
        stream_(BeatStream::Start(channel.Get(), "/muster.v1.HeartbeatService/StreamHeartbeats",
                                  Options(), std::make_shared<BeatReader>(inbox))) {}

  ~HeartbeatStream() override {
    if (goodbye_) stream_.AwaitEnd(kGoodbyeLimit);
    channel_.RenewIfBroken();
  }

  void Send(const Beat& beat) override {
    v1::StreamHeartbeatsRequest request;
    if (!std::exchange(named_, true)) {  // the sender is named once
      request.set_node(key_.node);
      request.set_instance_id(InstanceId());
      request.set_boot_id(BootId());
    }
    request.set_sequence(beat.sequence);
    ToProto(beat.uptime, request.mutable_uptime());
    ToProto(beat.time, request.mutable_time());
    if (beat.activity) ToMessage(*beat.activity, key_, request.add_activities());
    request.set_goodbye(beat.goodbye);
    if (beat.goodbye) {
      goodbye_ = true;
      stream_->SendLast(std::move(request));
    } else {
      stream_->Send(std::move(request));
    }
  }

 private:
  static StreamOptions Options() {
    StreamOptions options;
    options.notify_when_sent = true;
    return options;
  }

  RenewedChannel& channel_;
  const BeatKey key_;
  bool named_ = false;
  bool goodbye_ = false;
  const StreamOwner<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse> stream_;
};

}  // namespace

BeatDialler MakeStreamDialler(std::shared_ptr<const StatusChannels> channels, BeatKey key) {
  return [channels = std::move(channels), key = std::move(key), next = size_t{0}](
             BeatInbox& inbox, const std::stop_token&) mutable -> std::unique_ptr<BeatConnection> {
    return std::make_unique<HeartbeatStream>(*channels->all[next++ % channels->all.size()], key,
                                             inbox);
  };
}

}  // namespace muster::client
