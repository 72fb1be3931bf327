// The stream of one sender's heartbeats.
//
// A beat is dealt with on gRPC's own thread: it takes microseconds and waits for nothing. Small, as
// ten thousand of these are idle most of the time.
#ifndef MUSTER_SERVICES_STATUS_BEAT_REACTOR_H_
#define MUSTER_SERVICES_STATUS_BEAT_REACTOR_H_

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// What streams of heartbeats work with. All of it outlives them.
struct BeatParts {
  Registry& registry;
  BeatListener& listener;
  // Somebody came for this pair; does not wait. More than once is no harm.
  std::function<void(const v1::ResultKey&, const Sender&)> contact;
  const Clock& clock;
  // A stream is ended if its first beat has not come by then.
  absl::Duration first_within;
  // Whether a caller is not to be trusted any more.
  std::function<bool(const Caller&)> is_revoked;
};

// Deletes itself when gRPC is done with it and nobody probes it.
class BeatReactor : public grpc::ServerBidiReactor<v1::BeatRequest, v1::BeatResponse>,
                    public BeatLine,
                    public std::enable_shared_from_this<BeatReactor> {
 public:
  static BeatReactor* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                            const BeatParts& parts);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // BeatLine.
  void Probe() override;
  void End(const absl::Status& why) override;

 private:
  BeatReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
              const BeatParts& parts);

  absl::Status Take();
  absl::Status Begin();
  absl::Status TakeActivities();
  absl::Status TakeActivity(const v1::Activity& activity);
  void Answer(const Registry::Answer& answer);
  void Send();
  void Finish(const absl::Status& status, bool by_peer);
  void AwaitFirst();

  const BeatParts& parts_;
  grpc::CallbackServerContext* const context_;
  Call call_;
  std::shared_ptr<BeatReactor> self_;  // until OnDone

  std::unique_ptr<grpc::Alarm> first_late_;  // until the first beat

  // Of the reading thread.
  v1::BeatRequest request_;
  std::string instance_;
  std::optional<Registry::Seat> seat_;
  std::vector<size_t> contacts_;  // hashes of pairs that are known to have somebody

  v1::BeatResponse response_;
  std::mutex mutex_;
  // All below are guarded by mutex_.
  Registry::Answer answer_;
  bool answering_ = false;           // answer_ waits to be sent
  bool probing_ = false;             // a probe waits to be sent
  bool writing_ = false;             // a StartWrite is out
  bool begun_ = false;               // a message came
  bool by_peer_ = false;             // the sender went without a word
  std::optional<absl::Status> end_;  // to end with once no write is out
  bool ended_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BEAT_REACTOR_H_
