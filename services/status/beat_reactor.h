// The stream of one sender's heartbeats.
//
// A beat is dealt with on gRPC's own thread: it takes microseconds and waits for nothing. Small, as
// ten thousand of these are idle most of the time.
#ifndef MUSTER_SERVICES_STATUS_BEAT_REACTOR_H_
#define MUSTER_SERVICES_STATUS_BEAT_REACTOR_H_

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call.h"
#include "services/status/beat_intake.h"
#include "services/status/heartbeats/registry.h"

namespace muster {

// Deletes itself when gRPC is done with it and nobody probes it.
class BeatReactor
    : public grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>,
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

  void Answer(const Registry::Answer& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const absl::Status& status, bool by_peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitFirst();

  const BeatParts& parts_;
  grpc::CallbackServerContext* const context_;
  Call call_;
  std::shared_ptr<BeatReactor> self_;  // until OnDone

  std::unique_ptr<grpc::Alarm> first_late_;  // until the first beat

  // Of the reading thread.
  v1::StreamHeartbeatsRequest request_;
  BeatIntake intake_;

  v1::StreamHeartbeatsResponse response_;
  Mutex mutex_;
  Registry::Answer answer_ ABSL_GUARDED_BY(mutex_);
  bool answering_ ABSL_GUARDED_BY(mutex_) = false;           // answer_ waits to be sent
  bool probing_ ABSL_GUARDED_BY(mutex_) = false;             // a probe waits to be sent
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;             // a StartWrite is out
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;               // a message came
  bool by_peer_ ABSL_GUARDED_BY(mutex_) = false;             // the sender went without a word
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // to end with once no write is out
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BEAT_REACTOR_H_
