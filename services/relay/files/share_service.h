// muster.v1.ShareService of a relay.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_SERVICE_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "muster/v1/shares.grpc.pb.h"
#include "services/common/rpc/call.h"
#include "services/relay/files/fleet_share_index.h"
#include "services/relay/files/local_share_index.h"
#include "services/relay/files/share_aggregator_client.h"
#include "services/relay/files/share_parts.h"
#include "services/relay/files/share_queries.h"

namespace muster {

// Thread-safe.
class ShareService : public v1::ShareService::CallbackService {
 public:
  // All of them outlive the service.
  struct Helpers {
    const LocalShareIndex& local_index;
    ShareQueries& queries;
    const ShareAggregatorClient& aggregator;
    const FleetShareIndex& fleet_index;
    ShareRouting& routing;
  };

  // The executor of `disk` reads and writes.
  ShareService(const RpcRuntime& disk, ShareParts parts, const Helpers& helpers)
      : disk_(disk), parts_(std::move(parts)), helpers_(helpers) {}

  grpc::ServerUnaryReactor* OpenShare(grpc::CallbackServerContext* context,
                                      const v1::OpenShareRequest* request,
                                      v1::OpenShareResponse* response) override;
  grpc::ServerReadReactor<v1::UploadShareRequest>* UploadShare(grpc::CallbackServerContext* context,
                                                               v1::Share* response) override;
  grpc::ServerUnaryReactor* GetShare(grpc::CallbackServerContext* context,
                                     const v1::GetShareRequest* request,
                                     v1::Share* response) override;
  grpc::ServerWriteReactor<v1::FileChunk>* ReadShare(grpc::CallbackServerContext* context,
                                                     const v1::ReadShareRequest* request) override;
  grpc::ServerUnaryReactor* ListShares(grpc::CallbackServerContext* context,
                                       const v1::ListSharesRequest* request,
                                       v1::ListSharesResponse* response) override;
  grpc::ServerUnaryReactor* RemoveShare(grpc::CallbackServerContext* context,
                                        const v1::RemoveShareRequest* request,
                                        v1::RemoveShareResponse* response) override;
  grpc::ServerUnaryReactor* ReportShare(grpc::CallbackServerContext* context,
                                        const v1::ReportShareRequest* request,
                                        v1::ReportShareResponse* response) override;
  grpc::ServerUnaryReactor* AnswerShareQuery(grpc::CallbackServerContext* context,
                                             const v1::AnswerShareQueryRequest* request,
                                             v1::AnswerShareQueryResponse* response) override;

 private:
  absl::Status Admit(Call& call, const v1::OpenShareRequest& request, bool* retain) const;
  // Opens the upload unless this relay or, if the file was passed on, its parent has the content.
  void Open(const std::string& opener, const v1::SharedFile& file, v1::OpenShareResponse* response,
            Finish finish);
  void Begin(const std::string& opener, const v1::SharedFile& file, v1::OpenShareResponse* response,
             Finish finish);
  void Get(const v1::GetShareRequest& request, v1::Share* response, Finish finish) const;
  void Remove(const v1::RemoveShareRequest& request, Finish finish) const;
  absl::Status Report(Call& call, const v1::ReportShareRequest& request);
  // Returns OK if the caller is a child relay.
  absl::Status IsChild(const Call& call) const;
  // Returns whether this relay does not know a node of this name.
  bool IsUnknown(const std::string& target) const;
  // Returns OK if the caller is a party of the file: its source, its target, an operator, or a
  // child relay on the route to one of these.
  absl::Status AuthorizeParty(Call& call, const v1::ShareKey& key) const;

  const RpcRuntime disk_;
  const ShareParts parts_;
  const Helpers helpers_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_SERVICE_H_
