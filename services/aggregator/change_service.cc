#include "services/aggregator/change_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "services/aggregator/changes/change_source.h"
#include "services/common/base/status_macros.h"

namespace muster {

grpc::ServerWriteReactor<v1::FollowChangesResponse>* ChangeService::FollowChanges(
    grpc::CallbackServerContext* context, const v1::FollowChangesRequest* request) {
  return StartSourceStream<v1::FollowChangesResponse>(
      runtime_, context, "/muster.v1.ChangeService/FollowChanges", kWatchStreams,
      [this, request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::FollowChangesResponse>>> {
        RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
        std::optional<int64_t> cursor;
        if (request->has_cursor()) cursor = request->cursor();
        const FollowedPairs pairs = request->runs_only()     ? FollowedPairs::kNone
                                    : request->batch_pairs() ? FollowedPairs::kTogether
                                                             : FollowedPairs::kSingly;
        return std::make_unique<ChangeSource>(store_, feed_, clock_, cursor, pairs,
                                              changes_.Watch(std::move(wake)));
      });
}

}  // namespace muster
