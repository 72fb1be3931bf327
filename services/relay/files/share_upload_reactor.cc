#include "services/relay/files/share_upload_reactor.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"

namespace muster {

std::string OpenerOf(const Identity& caller) {
  if (const auto* node = std::get_if<NodeIdentity>(&caller.name)) return NodeOpener(node->name);
  const auto* service = std::get_if<ServiceIdentity>(&caller.name);
  if (service == nullptr || service->role != ServiceRole::kRelay) return "";
  return RelayOpener(service->name);
}

ShareUploadReactor::ShareUploadReactor(const RpcRuntime& runtime,
                                       grpc::CallbackServerContext* context, ShareStore& store,
                                       std::function<void()> taken, v1::Share* response)
    : executor_(*runtime.executor),
      call_(runtime, context, "/muster.v1.ShareService/UploadShare"),
      store_(store),
      taken_(std::move(taken)),
      response_(response) {}

ShareUploadReactor* ShareUploadReactor::Start(const RpcRuntime& runtime,
                                              grpc::CallbackServerContext* context,
                                              ShareStore& store, std::function<void()> taken,
                                              v1::Share* response) {
  auto* reactor = new ShareUploadReactor(runtime, context, store, std::move(taken), response);
  absl::Status allowed = reactor->call_.caller_status();
  if (allowed.ok()) allowed = reactor->call_.Authorize(Resource::Own());
  if (allowed.ok()) {
    reactor->StartRead(&reactor->request_);
  } else {
    reactor->End(allowed);
  }
  return reactor;
}

// Not deleted before Finish, which nobody calls while a message is dealt with.
void ShareUploadReactor::OnReadDone(bool ok) {
  if (!ok) return End(absl::CancelledError("the stream ended without its finish"));
  const bool queued = executor_.Post([this] {
    const absl::Status status = Take();
    if (!status.ok() || complete_) return End(status);
    StartRead(&request_);
  });
  if (!queued) End(errors::Overloaded());
}

absl::Status ShareUploadReactor::Take() {
  if (request_.has_start() == (upload_ != nullptr)) {
    return errors::InvalidChunk("a stream has one start, before anything else");
  }
  switch (request_.message_case()) {
    case v1::UploadShareRequest::kStart:
      return Begin();
    case v1::UploadShareRequest::kChunk: {
      const v1::FileChunk& chunk = request_.chunk();
      if (chunk.data().size() > kChunkMaxLarge) {
        return errors::ChunkTooLarge(static_cast<int64_t>(chunk.data().size()), kChunkMaxLarge);
      }
      return upload_->Append(epoch_, chunk.offset(), chunk.data(), chunk.crc32c());
    }
    case v1::UploadShareRequest::kFinish: {
      ASSIGN_OR_RETURN(auto held, store_.Complete(*upload_, epoch_));
      *response_ = std::move(held.share);
      complete_ = true;
      taken_();
      return absl::OkStatus();
    }
    case v1::UploadShareRequest::MESSAGE_NOT_SET:
      break;
  }
  return errors::InvalidChunk("a message without content");
}

absl::Status ShareUploadReactor::Begin() {
  ASSIGN_OR_RETURN(
      upload_, store_.FindUpload(request_.start().upload_id(), OpenerOf(call_.caller().identity)));
  epoch_ = request_.start().epoch();
  return absl::OkStatus();
}

// The read that is under way then fails, and finds that it has ended.
void ShareUploadReactor::OnCancel() {}

void ShareUploadReactor::End(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    ended_ = true;
  }
  upload_.reset();
  Finish(call_.Final(status));
}

}  // namespace muster
