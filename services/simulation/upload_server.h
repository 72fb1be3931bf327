// The server of uploads on a simulated machine: what ResultService is in a program.
#ifndef MUSTER_SERVICES_SIMULATION_UPLOAD_SERVER_H_
#define MUSTER_SERVICES_SIMULATION_UPLOAD_SERVER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/common/upload/upload_receiver.h"
#include "services/simulation/network.h"

namespace muster::testing {

class UploadServer;

// The ends of one stream of Upload, at its client.
struct UploadStreamEvents {
  std::function<void(v1::UploadResponse)> message;
  std::function<void(absl::Status)> end;  // after the last message
};

// One stream at the server. The threads of the server only note what they want to send: Flush
// passes it to the network.
class ServedUpload final : public UploadConnection,
                           public std::enable_shared_from_this<ServedUpload> {
 public:
  ServedUpload(UploadServer& server, Caller caller, std::shared_ptr<Connection> connection,
               std::shared_ptr<UploadStreamEvents> client);

  void Begin(ReadAheadBudget& budget);
  void Receive(v1::UploadRequest request);  // from the network
  // Passes messages to the receiver and to the client. Returns whether there was anything to do.
  bool Flush();
  // The stream is over: as the last callback of a stream.
  void HandleEnd();
  bool ended() const { return receiver_ == nullptr; }

  // UploadConnection.
  absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(
      const v1::UploadRequest::Start& start) override;
  UploadPeer Peer() const override { return PeerOf(caller_); }
  absl::StatusOr<UploadTicket> Count() override;
  void ReadNext() override;
  bool SendAck(const UploadAck& ack) override;
  void EndCommitted(UploadSession& session, ResultRecord result) override;
  void End(const absl::Status& status) override;

 private:
  void Handle(v1::UploadRequest request);
  void Send(std::function<void()> deliver);

  UploadServer& server_;
  const Caller caller_;
  const std::shared_ptr<Connection> connection_;
  const std::shared_ptr<UploadStreamEvents> client_;
  std::shared_ptr<UploadReceiver> receiver_;
  std::deque<v1::UploadRequest> received_;
  std::string upload_;
  std::string sent_;       // the digest in the finish
  bool complete_ = false;  // before this stream

  Mutex mutex_;
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<UploadAck> ack_ ABSL_GUARDED_BY(mutex_);
  std::optional<ResultRecord> committed_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
};

// One thread uses it, except for what its callbacks note.
class UploadServer {
 public:
  // The acknowledged bytes of an upload, and those that may be stored.
  struct Acked {
    int64_t sent = 0;
    int64_t written = 0;
    int64_t durable = 0;
    bool completing = false;  // all bytes were sent
  };
  // The senders that asked to continue an upload.
  struct Openers {
    std::string attempt;     // of a result
    int claims = 0;          // of relays without a proof, since the owner had it
    int unanswered = 0;      // of those
    int64_t own = 0;         // bytes that the owner had stored before
    bool forgotten = false;  // by a restart of the process: which bytes are the owner's
    bool reclaimed = false;  // the owner has asked since then
  };
  using Opened = std::function<void(absl::StatusOr<v1::OpenUploadResponse>)>;

  explicit UploadServer(std::string machine) : machine_(std::move(machine)) {}
  virtual ~UploadServer() = default;

  const std::string& machine() const { return machine_; }
  virtual bool running() const = 0;
  // Returns whether the machine still sends what its process has passed to it.
  virtual bool has_power() const = 0;

  // Waits until no thread of the process has work.
  void AwaitIdle() {
    if (running()) Settle();
  }

  // Calls `opened` in a Flush.
  void Open(const v1::OpenUploadRequest& request, const Caller& caller, Opened opened);
  std::shared_ptr<ServedUpload> Accept(const Caller& caller, std::shared_ptr<Connection> connection,
                                       std::shared_ptr<UploadStreamEvents> client);

  // Passes on what the threads of the process want to send. Returns the first broken promise.
  absl::Status Flush();
  // Ends all streams, before the process ends.
  void DropStreams();
  void LosePower();

  // The server of the stream of an upload that this one has opened, and the machine whose
  // connection carries it.
  virtual UploadServer& ServerOf(const std::string& upload) { return *this; }
  // The caller of that stream, as its server sees it.
  virtual Caller CallerOf(const std::string& upload, const Caller& caller) { return caller; }

  // A client is about to send bytes up to `end`.
  void NoteSent(const std::string& upload, int64_t end);

 protected:
  friend class ServedUpload;
  virtual void OpenUpload(const v1::OpenUploadRequest& request, const Caller& caller,
                          Opened opened) = 0;
  virtual absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(const std::string& id,
                                                                     const Caller& caller) = 0;
  virtual absl::StatusOr<UploadTicket> CountStream(const std::string& id, const Caller& caller) = 0;
  // Returns whether the result is complete, so that its upload has no session.
  virtual bool IsComplete(const std::string& upload) const { return false; }
  // A completion has succeeded: called on any thread.
  virtual void EndSession(UploadSession& session) = 0;
  // Returns the last message of the stream. `sent`: the digest in the finish of its sender.
  virtual absl::StatusOr<v1::UploadResponse> Reply(const std::string& upload,
                                                   const std::string& sent,
                                                   const ResultRecord& result) = 0;
  virtual void Settle() = 0;  // AwaitIdle
  virtual absl::Status CheckOpened(const v1::OpenUploadRequest& request,
                                   const v1::OpenUploadResponse& response) = 0;

  // The upload was discarded: its bytes are not needed any more.
  void ForgetAcked(const std::string& upload) { acked_.erase(upload); }

  void Break(const absl::Status& broken) {
    if (broken_.ok()) broken_ = broken;
  }

 private:
  struct Answer {
    v1::OpenUploadRequest request;
    bool by_owner;
    Opened opened;
    absl::StatusOr<v1::OpenUploadResponse> response;
  };

  void NoteOpening(const v1::OpenUploadRequest& request, bool by_owner);
  void NoteAnswer(const Answer& answer);
  absl::Status CheckOffset(const v1::OpenUploadResponse& response) const;

  const std::string machine_;
  ReadAheadBudget budget_{int64_t{1} << 20};
  std::vector<std::shared_ptr<ServedUpload>> streams_;
  std::map<std::string, Acked> acked_;      // by upload
  std::map<std::string, Openers> openers_;  // by upload
  absl::Status broken_;
  Mutex mutex_;
  std::vector<Answer> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_UPLOAD_SERVER_H_
