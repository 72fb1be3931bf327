#include "services/client/heartbeat_stream.h"

#include <utility>

#include "muster/v1/heartbeats.pb.h"
#include "services/client/clean_text.h"
#include "services/client/progress_message.h"
#include "services/client/status_channels.h"
#include "services/common/base/process_identity.h"
#include "services/common/base/random_id.h"
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

void ToMessage(const Fault& fault, v1::Fault* message) {
  message->set_check(static_cast<v1::Fault::Check>(fault.check));
  message->set_address(CleanText(fault.address, kMaxText));
  message->set_message(CleanText(fault.message, kMaxText));
  message->set_next_step(CleanText(fault.next_step, kMaxText));
}

void ToMessage(const Activity& activity, const HeartbeatKey& key, v1::Activity* message) {
  message->mutable_key()->set_run(key.run);
  message->mutable_key()->set_plugin(key.plugin);
  message->mutable_key()->set_node(key.node);
  message->set_phase(static_cast<v1::Phase>(activity.phase));
  message->set_message(CleanText(activity.message, kMaxText));
  if (activity.progress) ToMessage(*activity.progress, message->mutable_progress());
  if (activity.fault) ToMessage(*activity.fault, message->mutable_fault());
}

using Stream = ClientStream<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>;

// Passes the messages of a stream to an inbox.
class HeartbeatReader final : public Stream::Handler {
 public:
  explicit HeartbeatReader(HeartbeatInbox& inbox) : inbox_(inbox) {}

  void OnStart(const std::shared_ptr<Stream>& stream) override {
    stream_ = stream;
    stream->ReadNext();
  }

  void OnMessage(v1::StreamHeartbeatsResponse response) override {
    HeartbeatAnswer answer;
    answer.sequence = response.sequence();
    answer.probe = response.probe();
    if (response.has_interval()) answer.interval = FromProto(response.interval());
    if (response.has_time()) answer.time = FromProto(response.time());
    inbox_.OnAnswer(answer);
    stream_->ReadNext();
  }

  void OnWritable() override { inbox_.OnWritable(); }
  void OnEnd(const absl::Status& status, EndedBy) override { inbox_.OnEnd(status); }

 private:
  HeartbeatInbox& inbox_;
  std::shared_ptr<Stream> stream_;
};

class HeartbeatStream final : public HeartbeatConnection {
 public:
  HeartbeatStream(RenewedChannel& channel, HeartbeatKey key, HeartbeatInbox& inbox)
      : channel_(channel),
        key_(std::move(key)),
        stream_(Stream::Start(channel.Get(), "/muster.v1.HeartbeatService/StreamHeartbeats",
                              Options(), std::make_shared<HeartbeatReader>(inbox))) {}

  ~HeartbeatStream() override {
    if (goodbye_) stream_.AwaitEnd(kGoodbyeLimit);
    channel_.RenewIfBroken();
  }

  void Send(const Heartbeat& heartbeat) override {
    v1::StreamHeartbeatsRequest request;
    if (!std::exchange(named_, true)) {  // the sender is named once
      request.set_node(key_.node);
      request.set_instance_id(InstanceId());
      request.set_boot_id(BootId());
    }
    request.set_sequence(heartbeat.sequence);
    ToProto(heartbeat.uptime, request.mutable_uptime());
    ToProto(heartbeat.time, request.mutable_time());
    if (heartbeat.activity) ToMessage(*heartbeat.activity, key_, request.add_activities());
    request.set_goodbye(heartbeat.goodbye);
    if (heartbeat.goodbye) {
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
  const HeartbeatKey key_;
  bool named_ = false;
  bool goodbye_ = false;
  const StreamOwner<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse> stream_;
};

}  // namespace

HeartbeatDialer MakeStreamDialer(std::shared_ptr<const StatusChannels> channels, HeartbeatKey key) {
  return [channels = std::move(channels), key = std::move(key), next = size_t{0}](
             HeartbeatInbox& inbox,
             const std::stop_token&) mutable -> std::unique_ptr<HeartbeatConnection> {
    return std::make_unique<HeartbeatStream>(*channels->all[next++ % channels->all.size()], key,
                                             inbox);
  };
}

}  // namespace muster::client
