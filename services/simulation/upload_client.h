// A sender of one result, which resumes after any loss.
#ifndef MUSTER_SERVICES_SIMULATION_UPLOAD_CLIENT_H_
#define MUSTER_SERVICES_SIMULATION_UPLOAD_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.pb.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/simulation/network.h"
#include "services/simulation/upload_server.h"

namespace muster::testing {

// The messages of one attempt, as the client library and the drain of a relay send them: open,
// start, chunks within the window, finish.
class UploadClient : public std::enable_shared_from_this<UploadClient> {
 public:
  struct Upload {
    v1::OpenUploadRequest open;
    v1::UploadRequest::Finish finish;
    std::string content;
  };
  // How an attempt ends: the sender has a receipt, or an error. An open can have one as well. A
  // receipt for other bytes is a broken promise (crash_history.h).
  struct Receipt {
    bool spooled = false;
  };
  using Done = std::function<void(absl::StatusOr<Receipt>)>;

  // Begins an attempt of `machine`; `done` runs once, unless the attempt is abandoned.
  static std::shared_ptr<UploadClient> Begin(Network& network, const std::string& machine,
                                             const Caller& caller, UploadServer& server,
                                             Upload upload, uint64_t seed, Done done);

  // The process of the sender has ended.
  void Abandon();

 private:
  UploadClient(Network& network, std::string machine, Caller caller, UploadServer& server,
               Upload upload, uint64_t seed, Done done)
      : network_(network),
        machine_(std::move(machine)),
        caller_(std::move(caller)),
        server_(server),
        upload_(std::move(upload)),
        chance_(seed),
        done_(std::move(done)) {}

  void Open();
  void HandleOpened(const absl::StatusOr<v1::OpenUploadResponse>& response);
  void Stream(const v1::OpenUploadResponse& opened);
  void SendMore();
  void Send(v1::UploadRequest request);
  void HandleMessage(const v1::UploadResponse& response);
  void AwaitProgress();
  void FinishCommitted(const v1::Result& result);
  void Finish(absl::StatusOr<Receipt> outcome);
  int64_t size() const { return static_cast<int64_t>(upload_.content.size()); }

  Network& network_;
  const std::string machine_;
  const Caller caller_;
  UploadServer& server_;
  const Upload upload_;
  std::mt19937_64 chance_;
  Done done_;  // null: over
  std::shared_ptr<Connection> connection_;
  std::shared_ptr<std::weak_ptr<ServedUpload>> served_ =
      std::make_shared<std::weak_ptr<ServedUpload>>();
  std::string id_;
  int64_t offset_ = 0;  // of the next chunk
  int64_t acked_ = 0;
  bool finished_ = false;
  uint64_t progress_ = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_SIMULATION_UPLOAD_CLIENT_H_
