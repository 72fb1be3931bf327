#include "services/relay/topology/attach_service.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr int kMaxPage = 1'000;
// An older process tries again within a minute.
constexpr absl::Duration kDuplicateShown = absl::Minutes(5);

// Returns at most `limit` entries that the request asks for.
std::vector<TopologyEntry> EntriesOf(const TopologyView& topology,
                                     const v1::ListAttachedRequest& request, size_t limit) {
  if (request.name().empty()) {
    return topology.List(request.page_token(), limit, request.relay(), request.attached_only());
  }
  const auto entry = topology.Find(request.name());
  const bool wanted = entry && request.page_token() < request.name() &&
                      (request.relay().empty() || request.relay() == entry->relay) &&
                      (entry->attached || !request.attached_only());
  return wanted ? std::vector{*entry} : std::vector<TopologyEntry>();
}

}  // namespace

grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* AttachService::Attach(
    grpc::CallbackServerContext* context) {
  return AttachHandler::Start(runtime_, context, parts_, stopper_);
}

grpc::ServerUnaryReactor* AttachService::ListAttached(grpc::CallbackServerContext* context,
                                                      const v1::ListAttachedRequest* request,
                                                      v1::ListAttachedResponse* response) {
  return Answer(runtime_, context, "/muster.v1.AttachService/ListAttached", {*request, response},
                [=, this](Call& call) { return List(call, *request, response); });
}

// The token is the last name of the page before.
absl::Status AttachService::List(Call& call, const v1::ListAttachedRequest& request,
                                 v1::ListAttachedResponse* response) const {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  if (request.page_size() < 0 || request.page_size() > kMaxPage) {
    return errors::InvalidPageSize(kMaxPage);
  }
  if (!request.page_token().empty() && !ValidateName("page_token", request.page_token()).ok()) {
    return errors::InvalidPageToken();
  }
  const auto limit = static_cast<size_t>(request.page_size() > 0 ? request.page_size() : kMaxPage);
  const auto entries = EntriesOf(parts_.topology, request, limit + 1);
  const bool any_relay = std::any_of(entries.begin(), entries.end(),
                                     [](const TopologyEntry& entry) { return entry.is_relay; });
  absl::flat_hash_map<std::string, int64_t> descendants;
  if (any_relay) descendants = parts_.topology.CountDescendants();
  for (size_t i = 0; i < std::min(limit, entries.size()); ++i) {
    const TopologyEntry& entry = entries[i];
    v1::ListAttachedResponse::Child& child = *response->add_children();
    child.set_name(entry.name);
    child.set_is_relay(entry.is_relay);
    child.set_relay(entry.relay);
    child.set_attached(entry.attached);
    ToProto(entry.ChangeTime(), child.mutable_change_time());
    if (entry.duplicate_agent_at + kDuplicateShown > parts_.clock.Now()) {
      ToProto(entry.duplicate_agent_at, child.mutable_duplicate_agent_time());
    }
    if (entry.attached) child.set_link(entry.link);
    if (entry.info != nullptr) *child.mutable_info() = *entry.info;
    if (entry.is_relay) child.set_descendants(descendants[entry.name]);
  }
  if (entries.size() > limit) response->set_next_page_token(entries[limit - 1].name);
  return absl::OkStatus();
}

}  // namespace muster
