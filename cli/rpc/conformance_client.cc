#include "cli/rpc/conformance_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/rpc/jobs_channel.h"
#include "cli/rpc/unary_call.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

using Stub = v1::ConformanceService::Stub;

constexpr int kPage = 1'000;
constexpr const char* kBaseline = "the baseline of conformance";

}  // namespace

absl::StatusOr<ConformanceClient> ConformanceClient::Open(const OperatorContext& context) {
  ASSIGN_OR_RETURN(const auto channel, OpenJobsChannel(context));
  return ConformanceClient(v1::ConformanceService::NewStub(channel));
}

absl::StatusOr<std::vector<v1::NodeConformance>> ConformanceClient::List() {
  std::vector<v1::NodeConformance> nodes;
  v1::ListConformanceRequest request;
  request.set_page_size(kPage);
  do {
    ASSIGN_OR_RETURN(auto page, CallUnary(*stub_, &Stub::ListConformance, request,
                                          "the list of reports of conformance"));
    for (v1::NodeConformance& node : *page.mutable_nodes()) nodes.push_back(std::move(node));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return nodes;
}

absl::StatusOr<v1::NodeConformance> ConformanceClient::Get(const std::string& node) {
  v1::GetConformanceRequest request;
  request.set_node(node);
  return CallUnary(*stub_, &Stub::GetConformance, request,
                   absl::StrCat("the conformance of node ", node));
}

absl::StatusOr<v1::ConformanceBaseline> ConformanceClient::GetBaseline() {
  return CallUnary(*stub_, &Stub::GetBaseline, v1::GetBaselineRequest(), kBaseline);
}

absl::StatusOr<v1::ConformanceBaseline> ConformanceClient::SetBaseline(const std::string& node,
                                                                       absl::Duration max_age) {
  v1::SetBaselineRequest request;
  request.set_node(node);
  if (max_age > absl::ZeroDuration()) ToProto(max_age, request.mutable_max_age());
  return CallUnary(*stub_, &Stub::SetBaseline, request, kBaseline);
}

absl::StatusOr<v1::ConformanceBaseline> ConformanceClient::RemoveBaseline() {
  return CallUnary(*stub_, &Stub::RemoveBaseline, v1::RemoveBaselineRequest(), kBaseline);
}

}  // namespace muster::cli
