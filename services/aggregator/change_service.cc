#include "services/aggregator/change_service.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/changes/change_source.h"
#include "services/aggregator/joined_relay.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/identity.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"

namespace muster {
namespace {

// The jobs service refuses calls by the identity of their callers; runs are no concern of it.
bool GetsOnlyIdentities(const Call& call) { return RoleOf(call.caller().identity) == Role::kJobs; }

FollowedChanges ChangesFor(const Call& call, const v1::FollowChangesRequest& request) {
  if (GetsOnlyIdentities(call)) return FollowedChanges::kIdentities;
  return request.runs_only() ? FollowedChanges::kRuns : FollowedChanges::kAll;
}

}  // namespace

grpc::ServerWriteReactor<v1::FollowChangesResponse>* ChangeService::FollowChanges(
    grpc::CallbackServerContext* context, const v1::FollowChangesRequest* request) {
  return StartSourceStream<v1::FollowChangesResponse>(
      runtime_, context, "/muster.v1.ChangeService/FollowChanges", kWatchStreams,
      [this, request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::FollowChangesResponse>>> {
        RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
        RETURN_IF_ERROR(RefuseJoinedRelay(call));
        const std::string& run = request->pairs_of_run();
        if (!run.empty()) {
          if (GetsOnlyIdentities(call)) {
            return errors::NotYours(UriOf(call.caller()), call.method(), absl::StrCat("run ", run));
          }
          ASSIGN_OR_RETURN(const auto view, store_.GetRun(run));
          if (!view) return errors::RunNotFound(run);
          return std::make_unique<ChangeSource>(store_, feed_, clock_, run);
        }
        std::optional<ChangeSource::Cursor> cursor;
        if (request->has_cursor()) cursor = {request->cursor(), request->feed()};
        return std::make_unique<ChangeSource>(store_, feed_, clock_, cursor,
                                              ChangesFor(call, *request), operators_,
                                              changes_.Watch(std::move(wake)));
      });
}

}  // namespace muster
