#include "services/jobs/conformance_service.h"

#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/templates.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/change_origin.h"
#include "services/jobs/page_size.h"

namespace muster {
namespace {

constexpr absl::Duration kDefaultAge = absl::Hours(24 * 14);
constexpr absl::Duration kMinAge = absl::Hours(1);
constexpr absl::Duration kMaxAge = absl::Hours(24 * 365);
constexpr int64_t kMaxBaseline = 64 << 10;  // bytes

}  // namespace

grpc::ServerUnaryReactor* ConformanceService::ListConformance(
    grpc::CallbackServerContext* context, const v1::ListConformanceRequest* request,
    v1::ListConformanceResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ConformanceService/ListConformance",
                {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

absl::Status ConformanceService::List(Call& call, const v1::ListConformanceRequest& request,
                                      v1::ListConformanceResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  ASSIGN_OR_RETURN(const size_t limit, PageSize(request.page_size()));
  if (!request.page_token().empty() && !ValidateName("node", request.page_token()).ok()) {
    return errors::InvalidPageToken();
  }
  ASSIGN_OR_RETURN(auto page, store_.List(request.page_token(), limit, clock_.Now(),
                                          response->mutable_next_page_token()));
  for (v1::NodeConformance& node : page) *response->add_nodes() = std::move(node);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ConformanceService::GetConformance(
    grpc::CallbackServerContext* context, const v1::GetConformanceRequest* request,
    v1::NodeConformance* response) {
  return Answer(runtime_, context, "/muster.v1.ConformanceService/GetConformance",
                {*request, response}, [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  RETURN_IF_ERROR(ValidateName("node", request->node()));
                  ASSIGN_OR_RETURN(*response, store_.Get(request->node(), clock_.Now()));
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ConformanceService::GetBaseline(grpc::CallbackServerContext* context,
                                                          const v1::GetBaselineRequest* request,
                                                          v1::ConformanceBaseline* response) {
  return Answer(runtime_, context, "/muster.v1.ConformanceService/GetBaseline",
                {*request, response}, [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(*response, store_.GetBaseline());
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* ConformanceService::SetBaseline(grpc::CallbackServerContext* context,
                                                          const v1::SetBaselineRequest* request,
                                                          v1::ConformanceBaseline* response) {
  return Answer(runtime_, context, "/muster.v1.ConformanceService/SetBaseline",
                {*request, response},
                [=, this](Call& call) { return Set(call, *request, response); });
}

absl::Status ConformanceService::Set(Call& call, const v1::SetBaselineRequest& request,
                                     v1::ConformanceBaseline* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  RETURN_IF_ERROR(ValidateName("node", request.node()));
  const absl::Duration age = request.has_max_age() ? FromProto(request.max_age()) : kDefaultAge;
  if (age < kMinAge || age > kMaxAge) {
    return errors::InvalidBaseline("max_age is not from 1 h to 365 days");
  }
  RETURN_IF_ERROR(reserve_.CheckData(kMaxBaseline));
  v1::ConformanceBaseline baseline;
  baseline.set_node(request.node());
  ToProto(age, baseline.mutable_max_age());
  baseline.set_set_by(UriOf(call.caller()));
  ToProto(clock_.Now(), baseline.mutable_set_time());
  ASSIGN_OR_RETURN(*response, store_.SetBaseline(std::move(baseline), OriginOf(call).vouched_by));
  Log(LogLevel::kInfo, "the baseline of conformance is set",
      {{"node", response->node()}, {"operator", response->set_by()}});
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ConformanceService::RemoveBaseline(
    grpc::CallbackServerContext* context, const v1::RemoveBaselineRequest* request,
    v1::ConformanceBaseline* response) {
  return Answer(runtime_, context, "/muster.v1.ConformanceService/RemoveBaseline",
                {*request, response}, [=, this](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(*response, store_.RemoveBaseline(OriginOf(call), clock_.Now()));
                  Log(LogLevel::kWarning, "the baseline of conformance is removed",
                      {{"operator", UriOf(call.caller())}});
                  return absl::OkStatus();
                });
}

}  // namespace muster
