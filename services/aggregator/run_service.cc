#include "services/aggregator/run_service.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "services/aggregator/convert.h"
#include "services/aggregator/run_view.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr int kMaxPage = 1000;
constexpr int kDefaultPage = 100;
constexpr int kMaxPreviewed = 1000;

NewRun FromProto(const v1::CreateRunRequest& request, Actor created_by) {
  NewRun wanted;
  wanted.request_id = request.request_id();
  wanted.title = request.title();
  wanted.created_by = std::move(created_by);
  wanted.plugins.assign(request.plugins().begin(), request.plugins().end());
  wanted.nodes.assign(request.nodes().begin(), request.nodes().end());
  if (request.has_timeout()) wanted.timeout = muster::FromProto(request.timeout());
  if (request.has_seal_grace()) wanted.seal_grace = muster::FromProto(request.seal_grace());
  if (request.has_start_grace()) wanted.start_grace = muster::FromProto(request.start_grace());
  if (request.has_lost_after()) wanted.lost_after = muster::FromProto(request.lost_after());
  wanted.fail_fast = request.fail_fast();
  return wanted;
}

absl::Status AllowedOnRun(Call& call, const std::string& run) {
  RETURN_IF_ERROR(CheckRunId(run));
  return call.Authorize(Resource::Run(run));
}

// Works as AllowedOnRun; an enrolled node may also read the runs whose plan names it.
absl::Status AllowedToSee(Call& call, StateStore& store, const std::string& run) {
  RETURN_IF_ERROR(AllowedOnRun(call, run));
  const auto* node = std::get_if<NodeIdentity>(&call.caller().identity.name);
  if (node == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool planned, store.IsNodePlanned(run, node->name));
  return planned ? absl::OkStatus() : errors::PairNotPlanned(run, "*", node->name);
}

absl::StatusOr<RetentionRules> RulesOf(const v1::RetentionRules& rules) {
  RetentionRules wanted{muster::FromProto(rules.age()), rules.runs(), rules.bytes()};
  if (wanted.age < absl::ZeroDuration()) return errors::InvalidRetention("age");
  if (wanted.runs < 0) return errors::InvalidRetention("runs");
  if (wanted.bytes < 0) return errors::InvalidRetention("bytes");
  return wanted;
}

v1::RetentionRules ToProto(const RetentionRules& rules) {
  v1::RetentionRules proto;
  muster::ToProto(rules.age, proto.mutable_age());
  proto.set_runs(rules.runs);
  proto.set_bytes(rules.bytes);
  return proto;
}

}  // namespace

grpc::ServerUnaryReactor* RunService::CreateRun(grpc::CallbackServerContext* context,
                                                const v1::CreateRunRequest* request,
                                                v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/CreateRun", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return Create(*request, ActorOf(call.caller()), response);
                });
}

absl::Status RunService::Create(const v1::CreateRunRequest& request, const Actor& created_by,
                                v1::Run* response) {
  const v1::SetStatusListenerRequest& listener = request.status_listener();
  if (request.has_status_listener()) {
    RETURN_IF_ERROR(status_listeners_.Check(listener.client_ca_pem(), listener.certificate_pem(),
                                            listener.key_pem()));
  }
  ASSIGN_OR_RETURN(auto run, runs_.Create(FromProto(request, created_by)));
  // A repeated call may find the run without its listener. Meanwhile another repetition may set it,
  // and the run may end.
  if (request.has_status_listener() && !run.status_listener) {
    const absl::Status set =
        status_listeners_.Set(run.id, listener.client_ca_pem(), listener.certificate_pem(),
                              listener.key_pem(), created_by);
    const std::string reason = ReasonOf(set);
    if (!set.ok() && reason != "STATUS_LISTENER_EXISTS" && reason != "RUN_ENDED") return set;
    ASSIGN_OR_RETURN(run, runs_.Get(run.id));
  }
  *response = ToProto(run);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RunService::GetRun(grpc::CallbackServerContext* context,
                                             const v1::GetRunRequest* request, v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/GetRun", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(AllowedToSee(call, store_, request->run()));
                  ASSIGN_OR_RETURN(auto run, runs_.Get(request->run()));
                  *response = ShownTo(call.caller(), std::move(run));
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* RunService::ListRuns(grpc::CallbackServerContext* context,
                                               const v1::ListRunsRequest* request,
                                               v1::ListRunsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/ListRuns", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  const int size = request->page_size() == 0 ? kDefaultPage : request->page_size();
                  if (size < 1 || size > kMaxPage) return errors::InvalidPageSize(kMaxPage);
                  ASSIGN_OR_RETURN(const auto page, store_.ListRuns(request->page_token(), size));
                  for (const RunRecord& run : page.items) *response->add_runs() = ToProto(run);
                  response->set_next_page_token(page.next);
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<v1::Run>* RunService::WatchRun(grpc::CallbackServerContext* context,
                                                        const v1::WatchRunRequest* request) {
  return StartSourceStream<v1::Run>(
      runtime_, context, "/muster.v1.RunService/WatchRun", kWatchStreams,
      [this, request](Call& call, std::function<void()> wake)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::Run>>> {
        RETURN_IF_ERROR(AllowedToSee(call, store_, request->run()));
        return std::make_unique<RunWatch>(store_, call, request->run(),
                                          changes_.Watch(std::move(wake)));
      });
}

grpc::ServerUnaryReactor* RunService::CancelRun(grpc::CallbackServerContext* context,
                                                const v1::CancelRunRequest* request,
                                                v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/CancelRun", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(AllowedOnRun(call, request->run()));
                  const auto run =
                      runs_.Cancel(request->run(), request->reason(), ActorOf(call.caller()));
                  if (run.ok()) *response = ToProto(*run);
                  return run.status();
                });
}

grpc::ServerUnaryReactor* RunService::DeleteRun(grpc::CallbackServerContext* context,
                                                const v1::DeleteRunRequest* request,
                                                v1::DeleteRunResponse* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/DeleteRun", {*request, response},
                [this, request](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(AllowedOnRun(call, request->run()));
                  return runs_.Delete(request->run(), ActorOf(call.caller()));
                });
}

absl::Status RunService::SignCredential(const v1::IssueCredentialRequest& request,
                                        const RunRecord& run, const Actor& asked_by,
                                        v1::Credential* response) {
  RunName name = RunNodeIdentity{run.id, request.plugin(), request.node()};
  if (request.any_node()) name = RunPluginIdentity{run.id, request.plugin()};
  ASSIGN_OR_RETURN(const auto signed_certificate,
                   authorities_.SignForRun(name, run, request.csr_pem(), {}, asked_by));
  ASSIGN_OR_RETURN(const auto authority, store_.GetAuthority(run.id));
  if (!authority) return errors::RunEnded(run.id);
  response->set_uri(signed_certificate.uri);
  response->set_certificate_pem(signed_certificate.leaf_pem);
  response->set_chain_pem(signed_certificate.chain_pem);
  response->set_run_ca_pem(authority->self_signed_pem);
  response->set_fleet_ca_pem(authorities_.FleetCaPem());
  const v1::Run shown = ToProto(run);
  if (run.listener.open) *response->mutable_legacy_urls() = shown.legacy_listener().urls();
  for (const std::string& target : addresses_.aggregator_targets) {
    response->add_grpc_targets(target);
  }
  for (const std::string& target : addresses_.status_targets) response->add_status_targets(target);
  *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(signed_certificate.expires));
  return absl::OkStatus();
}

absl::Status RunService::Pin(Call& call, const std::string& run, bool pinned, v1::Run* response) {
  RETURN_IF_ERROR(AllowedOnRun(call, run));
  const auto record = runs_.Pin(run, pinned, ActorOf(call.caller()));
  if (record.ok()) *response = muster::ToProto(*record);
  return record.status();
}

grpc::ServerUnaryReactor* RunService::PinRun(grpc::CallbackServerContext* context,
                                             const v1::PinRunRequest* request, v1::Run* response) {
  return Answer(
      runtime_, context, "/muster.v1.RunService/PinRun", {*request, response},
      [this, request, response](Call& call) { return Pin(call, request->run(), true, response); });
}

grpc::ServerUnaryReactor* RunService::UnpinRun(grpc::CallbackServerContext* context,
                                               const v1::UnpinRunRequest* request,
                                               v1::Run* response) {
  return Answer(
      runtime_, context, "/muster.v1.RunService/UnpinRun", {*request, response},
      [this, request, response](Call& call) { return Pin(call, request->run(), false, response); });
}

absl::Status RunService::Preview(const v1::PreviewRetentionRequest& request,
                                 v1::PreviewRetentionResponse* response) {
  RetentionRules rules = retention_.rules();
  if (request.has_rules()) {
    ASSIGN_OR_RETURN(rules, RulesOf(request.rules()));
  }
  *response->mutable_rules() = ToProto(rules);
  const auto count = [&](const ExpiredRun& expired) {
    response->set_expired_runs(response->expired_runs() + 1);
    response->set_expired_size(response->expired_size() + expired.run.bytes);
    if (response->runs_size() == kMaxPreviewed) return true;
    v1::ExpiredRun* run = response->add_runs();
    run->set_run(expired.run.id);
    run->set_title(expired.run.title);
    *run->mutable_end_time() = ToTimestamp(expired.run.ended_at);
    run->set_stored_size(expired.run.bytes);
    run->set_rule(expired.rule);
    run->set_in_use(retention_.IsInUse(expired.run.id));
    return true;
  };
  ASSIGN_OR_RETURN(const auto totals, VisitExpiredRuns(store_, rules, clock_.Now(), count));
  // Runs may have ended since.
  response->set_kept_runs(std::max<int64_t>(0, totals.runs - response->expired_runs()));
  response->set_kept_size(std::max<int64_t>(0, totals.bytes - response->expired_size()));
  response->set_pinned_runs(totals.pinned_runs);
  response->set_pinned_size(totals.pinned_bytes);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RunService::PreviewRetention(grpc::CallbackServerContext* context,
                                                       const v1::PreviewRetentionRequest* request,
                                                       v1::PreviewRetentionResponse* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/PreviewRetention", {*request, response},
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return Preview(*request, response);
                });
}

grpc::ServerUnaryReactor* RunService::IssueCredential(grpc::CallbackServerContext* context,
                                                      const v1::IssueCredentialRequest* request,
                                                      v1::Credential* response) {
  return AnswerLater(
      runtime_, context, "/muster.v1.RunService/IssueCredential", {*request, response},
      [this, request, response](const std::shared_ptr<Call>& call, Finish finish) {
        if (const absl::Status allowed = AllowedOnRun(*call, request->run()); !allowed.ok()) {
          return finish(allowed);
        }
        if (request->any_node() != request->node().empty()) {
          return finish(errors::NodeOrAnyNode());
        }
        const ResultKey key = {request->run(), request->plugin(),
                               request->any_node() ? "any" : request->node()};
        if (const absl::Status status = CheckKey(key); !status.ok()) return finish(status);
        ResultFilter filter;
        filter.run = request->run();
        filter.plugin = request->plugin();
        filter.node = request->node();
        filter.with_pending = true;
        const auto planned = store_.ListResults(filter, "", 1);
        if (!planned.ok()) return finish(planned.status());
        if (planned->items.empty()) {
          const auto run = runs_.Get(request->run());
          if (!run.ok()) return finish(run.status());
          return finish(errors::PairNotPlanned(request->run(), request->plugin(),
                                               request->any_node() ? "*" : request->node()));
        }
        listener_waits_.Wait(
            request->run(),
            request->listener_optional() ? ListenerKind::kOptionalLegacy : ListenerKind::kLegacy,
            [this, request, response, call,
             finish = std::move(finish)](absl::StatusOr<RunRecord> run) mutable {
              finish(run.ok() ? SignCredential(*request, *run, ActorOf(call->caller()), response)
                              : run.status());
            });
      });
}

absl::Status RunService::SignViewer(const v1::IssueViewerCredentialRequest& request,
                                    const RunRecord& run, const Actor& asked_by,
                                    v1::ViewerCredential* response) {
  ASSIGN_OR_RETURN(
      const auto signed_certificate,
      authorities_.SignForRun(RunViewerIdentity{run.id}, run, request.csr_pem(), {}, asked_by));
  std::string server_ca;
  if (run.status_listener) {
    ASSIGN_OR_RETURN(server_ca, status_listeners_.ServerCaPem(run.id));
    const v1::Run shown = ToProto(run);
    if (shown.status_listener().urls().empty()) return errors::ListenerNotReady(run.id, "");
    response->set_host_address(shown.status_listener().urls(0) + "/");
  } else {
    response->set_host_address(addresses_.status_urls.front());
  }
  response->set_uri(signed_certificate.uri);
  response->set_certificate_pem(signed_certificate.leaf_pem);
  response->set_chain_pem(signed_certificate.chain_pem);
  response->set_server_ca_pem(server_ca.empty() ? authorities_.FleetCaPem() : server_ca);
  *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(signed_certificate.expires));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RunService::IssueViewerCredential(
    grpc::CallbackServerContext* context, const v1::IssueViewerCredentialRequest* request,
    v1::ViewerCredential* response) {
  return AnswerLater(
      runtime_, context, "/muster.v1.RunService/IssueViewerCredential", {*request, response},
      [this, request, response](const std::shared_ptr<Call>& call, Finish finish) {
        if (const absl::Status allowed = AllowedOnRun(*call, request->run()); !allowed.ok()) {
          return finish(allowed);
        }
        listener_waits_.Wait(
            request->run(), ListenerKind::kStatus,
            [this, request, response, call,
             finish = std::move(finish)](absl::StatusOr<RunRecord> run) mutable {
              finish(run.ok() ? SignViewer(*request, *run, ActorOf(call->caller()), response)
                              : run.status());
            });
      });
}

absl::Status RunService::SetStatus(Call& call, const v1::SetStatusListenerRequest& request,
                                   v1::Run* response) {
  RETURN_IF_ERROR(AllowedOnRun(call, request.run()));
  RETURN_IF_ERROR(status_listeners_.Set(request.run(), request.client_ca_pem(),
                                        request.certificate_pem(), request.key_pem(),
                                        ActorOf(call.caller())));
  const auto run = runs_.Get(request.run());
  if (run.ok()) *response = ToProto(*run);
  return run.status();
}

grpc::ServerUnaryReactor* RunService::SetStatusListener(grpc::CallbackServerContext* context,
                                                        const v1::SetStatusListenerRequest* request,
                                                        v1::Run* response) {
  return Answer(
      runtime_, context, "/muster.v1.RunService/SetStatusListener", {*request, response},
      [this, request, response](Call& call) { return SetStatus(call, *request, response); });
}

}  // namespace muster
