// The stream of a relay that forwards the heartbeats of all its descendants.
//
// A message may contain a thousand senders, each with a signature to verify. It is handled on the
// executor, in several turns, and the next one is read after it.
#ifndef MUSTER_SERVICES_STATUS_RELAY_HEARTBEAT_HANDLER_H_
#define MUSTER_SERVICES_STATUS_RELAY_HEARTBEAT_HANDLER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server_stream.h"
#include "services/status/heartbeat_intake.h"
#include "services/status/heartbeats/relay_table.h"

namespace muster {

// Only callbacks use the members. EndMember and Probe are thread-safe.
class RelayHeartbeatHandler
    : public ServerStreamHandler<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>,
      public std::enable_shared_from_this<RelayHeartbeatHandler> {
 public:
  RelayHeartbeatHandler(const RpcRuntime& runtime, const HeartbeatParts& parts);

  static ServerStreamOptions Options(absl::Duration first_within);

  // ServerStreamHandler.
  void OnStart(const std::shared_ptr<ServerStream<v1::RelayHeartbeatsResponse>>& stream) override;
  void OnMessage(v1::RelayHeartbeatsRequest request) override;
  void OnHalfClose() override;
  void OnWritable() override;
  void OnEnd(const absl::Status& status, EndedBy by) override;

  // Ends the stream, once it was started; thread-safe.
  void End(const absl::Status& status);

 private:
  class Member;

  // The reason why a stream is that of the relay that it names.
  struct Proof {
    // The statement of the relay, with which an ancestor forwards the stream; null if the relay
    // itself is the caller.
    std::shared_ptr<const Caller> statement;
    std::string parent;  // the relay that the statement names
    absl::Time expires;  // of the statement
    // The end of the statement, or of the last one of a sender: senders renew theirs.
    absl::Time until = absl::InfiniteFuture();
  };

  absl::StatusOr<std::optional<Proof>> Prove();
  std::string PayerOf(const Proof* proof) const;
  absl::Status CheckProof() const;
  absl::Status Begin(const v1::RelayHeartbeatsRequest& request);
  void HandleTurn();
  void ReadIfAnswered();
  absl::Status HandleSenders(bool* more);
  absl::Status CountInvalid(const absl::Status& why);
  void SendAnswer();
  absl::Status HandleSender(v1::RelayHeartbeatsRequest::Sender& sender);
  absl::Status HandleHeartbeat(const std::shared_ptr<Member>& member,
                               v1::StreamHeartbeatsRequest& heartbeat);
  void HandleHeardId(int32_t id);
  void Drop(int32_t id);
  // Refuses a sender and removes its member, so that each is refused once.
  void Refuse(int32_t id, const absl::Status& why);
  void EndMember(int32_t id, const absl::Status& why);
  void Probe(int32_t id);

  const RpcRuntime runtime_;
  const HeartbeatParts& parts_;
  std::shared_ptr<ServerStream<v1::RelayHeartbeatsResponse>> stream_;
  std::string relay_name_;       // from the first message on
  std::string payer_;            // of statements that are not valid; from the first message on
  RelayState* relay_ = nullptr;  // once this stream or a sender is proven
  std::optional<Proof> proof_;   // the relay counts as connected by this stream
  std::unordered_map<int32_t, std::shared_ptr<Member>> members_;
  v1::RelayHeartbeatsRequest request_;  // is being handled
  int next_sender_ = 0;                 // of request_
  int statements_ = 0;                  // that were verified in this turn
  bool read_due_ = false;               // the next message is read once there is room for answers

  Mutex mutex_;
  std::vector<std::pair<int32_t, absl::Status>> refused_ ABSL_GUARDED_BY(mutex_);  // to be sent
  std::vector<int32_t> probes_ ABSL_GUARDED_BY(mutex_);                            // to be sent
  std::vector<int32_t> gone_ ABSL_GUARDED_BY(mutex_);                              // to be removed
  bool answer_due_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_RELAY_HEARTBEAT_HANDLER_H_
