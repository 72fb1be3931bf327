// One UploadShare stream: a chunk is on the disk before the next is read.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_REACTOR_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_REACTOR_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string>

#include "muster/v1/shares.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call.h"
#include "services/relay/files/share_store.h"

namespace muster {

// Deletes itself when gRPC is done with it.
class ShareUploadReactor : public grpc::ServerReadReactor<v1::UploadShareRequest> {
 public:
  // `taken` is called when a file is complete.
  static ShareUploadReactor* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                   ShareStore& store, std::function<void()> taken,
                                   v1::Share* response);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  ShareUploadReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                     ShareStore& store, std::function<void()> taken, v1::Share* response);

  absl::Status Take();
  absl::Status Begin();
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  Executor& executor_;
  Call call_;
  ShareStore& store_;
  const std::function<void()> taken_;
  v1::Share* const response_;
  // Of the message that is dealt with, one at a time.
  v1::UploadShareRequest request_;
  std::shared_ptr<ShareUpload> upload_;
  int64_t epoch_ = 0;
  bool complete_ = false;
  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// The opener of an upload that a caller may send; empty for who may send none.
std::string OpenerOf(const Identity& caller);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_REACTOR_H_
