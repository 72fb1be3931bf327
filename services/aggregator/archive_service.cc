#include "services/aggregator/archive_service.h"

#include <memory>
#include <utility>

#include "services/aggregator/convert.h"
#include "services/aggregator/file_stream.h"
#include "services/aggregator/verify/damage.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"

namespace muster {

namespace {

absl::Status Authorize(Call& call, const std::string& run) {
  RETURN_IF_ERROR(CheckRunId(run));
  return call.Authorize(Resource::Run(run));
}

}  // namespace

absl::StatusOr<ArchiveRecord> ArchiveService::Find(const std::string& run) {
  ASSIGN_OR_RETURN(auto record, runs_.Get(run));
  if (record.state == RunState::kComplete) return std::move(record.archive);
  return IsFinal(record.state) ? errors::NoArchive(run) : errors::ArchiveNotReady(run);
}

grpc::ServerUnaryReactor* ArchiveService::GetArchive(grpc::CallbackServerContext* context,
                                                     const v1::GetArchiveRequest* request,
                                                     v1::Archive* response) {
  return Answer(runtime_, context, "/muster.v1.ArchiveService/GetArchive", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(Authorize(call, request->run()));
                  ASSIGN_OR_RETURN(const auto archive, Find(request->run()));
                  response->set_run(request->run());
                  response->set_file_name(archive.file_name);
                  response->set_size(archive.size);
                  response->set_sha256(archive.sha256);
                  *response->mutable_create_time() = ToTimestamp(archive.created_at);
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<v1::FileChunk>* ArchiveService::ReadArchive(
    grpc::CallbackServerContext* context, const v1::ReadArchiveRequest* request) {
  return StartSourceStream<v1::FileChunk>(
      runtime_, context, "/muster.v1.ArchiveService/ReadArchive", kFileStreams,
      [this, request](Call& call, const std::function<void()>&)
          -> absl::StatusOr<std::unique_ptr<FileChunkSource>> {
        RETURN_IF_ERROR(Authorize(call, request->run()));
        RunReaders::Hold hold = readers_.Add(request->run());
        ASSIGN_OR_RETURN(const auto archive, Find(request->run()));
        if (!archive.damage.empty()) return errors::ArchiveDamaged(request->run(), archive.damage);
        const DamageRecorder recorder(store_, clock_, ActorOf(call.caller()));
        auto source = StreamArchive(blobs_, recorder, request->run(), archive, request->offset());
        if (absl::IsDataLoss(source.status())) {  // the run may have been deleted since
          RETURN_IF_ERROR(runs_.Get(request->run()).status());
        }
        RETURN_IF_ERROR(source.status());
        return WithHold(*std::move(source), std::move(hold));
      });
}

}  // namespace muster
