#include "services/aggregator/run_service.h"

#include <memory>
#include <utility>
#include <variant>

#include "services/aggregator/convert.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr int kMaxPage = 1000;
constexpr int kDefaultPage = 100;

std::string UriOf(const Call& call) { return ToUri(call.caller().identity).value_or(""); }

NewRun FromProto(const v1::CreateRunRequest& request, std::string created_by) {
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
  ResultFilter filter;
  filter.run = run;
  filter.node = node->name;
  filter.with_pending = true;
  ASSIGN_OR_RETURN(const auto planned, store.ListResults(filter, "", 1));
  return planned.items.empty() ? errors::PairNotPlanned(run, "*", node->name) : absl::OkStatus();
}

// Sends the run now and after each change until it has ended.
class RunWatch : public StreamSource<v1::Run> {
 public:
  RunWatch(StateStore& store, std::string run, ChangeDispatcher::Handle watch)
      : store_(store), run_(std::move(run)), watch_(std::move(watch)) {}

  absl::StatusOr<Pull> Next(v1::Run* run) override {
    if (ended_) return Pull::kEnd;
    ASSIGN_OR_RETURN(const auto view, store_.GetRun(run_));
    if (!view) return errors::RunNotFound(run_);
    if (view->last_change == last_change_) return Pull::kWait;
    last_change_ = view->last_change;
    ended_ = IsFinal(view->run.state);
    *run = ToProto(view->run);
    return Pull::kMessage;
  }

 private:
  StateStore& store_;
  const std::string run_;
  const ChangeDispatcher::Handle watch_;
  int64_t last_change_ = -1;
  bool ended_ = false;
};

}  // namespace

grpc::ServerUnaryReactor* RunService::CreateRun(grpc::CallbackServerContext* context,
                                                const v1::CreateRunRequest* request,
                                                v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/CreateRun", *request,
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  const auto run = runs_.Create(FromProto(*request, UriOf(call)));
                  if (run.ok()) *response = ToProto(*run);
                  return run.status();
                });
}

grpc::ServerUnaryReactor* RunService::GetRun(grpc::CallbackServerContext* context,
                                             const v1::GetRunRequest* request, v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/GetRun", *request,
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(AllowedToSee(call, store_, request->run()));
                  const auto run = runs_.Get(request->run());
                  if (run.ok()) *response = ToProto(*run);
                  return run.status();
                });
}

grpc::ServerUnaryReactor* RunService::ListRuns(grpc::CallbackServerContext* context,
                                               const v1::ListRunsRequest* request,
                                               v1::ListRunsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/ListRuns", *request,
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
        return std::make_unique<RunWatch>(store_, request->run(), changes_.Watch(std::move(wake)));
      });
}

grpc::ServerUnaryReactor* RunService::CancelRun(grpc::CallbackServerContext* context,
                                                const v1::CancelRunRequest* request,
                                                v1::Run* response) {
  return Answer(runtime_, context, "/muster.v1.RunService/CancelRun", *request,
                [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(AllowedOnRun(call, request->run()));
                  const auto run = runs_.Cancel(request->run(), request->reason(), UriOf(call));
                  if (run.ok()) *response = ToProto(*run);
                  return run.status();
                });
}

grpc::ServerUnaryReactor* RunService::DeleteRun(grpc::CallbackServerContext* context,
                                                const v1::DeleteRunRequest* request,
                                                v1::DeleteRunResponse*) {
  return Answer(runtime_, context, "/muster.v1.RunService/DeleteRun", *request,
                [this, request](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(AllowedOnRun(call, request->run()));
                  return runs_.Delete(request->run(), UriOf(call));
                });
}

absl::Status RunService::SignCredential(const v1::IssueCredentialRequest& request,
                                        const RunRecord& run, const std::string& asked_by,
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
  *response->mutable_legacy_urls() = shown.legacy_listener().urls();
  for (const std::string& target : addresses_.aggregator_targets) {
    response->add_grpc_targets(target);
  }
  for (const std::string& target : addresses_.status_targets) response->add_status_targets(target);
  *response->mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(signed_certificate.expires));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* RunService::IssueCredential(grpc::CallbackServerContext* context,
                                                      const v1::IssueCredentialRequest* request,
                                                      v1::Credential* response) {
  return AnswerLater(
      runtime_, context, "/muster.v1.RunService/IssueCredential", *request,
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
        listener_waits_.Wait(request->run(), ListenerKind::kLegacy,
                             [this, request, response, call,
                              finish = std::move(finish)](absl::StatusOr<RunRecord> run) mutable {
                               finish(run.ok()
                                          ? SignCredential(*request, *run, UriOf(*call), response)
                                          : run.status());
                             });
      });
}

absl::Status RunService::SignViewer(const v1::IssueViewerCredentialRequest& request,
                                    const RunRecord& run, const std::string& asked_by,
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
      runtime_, context, "/muster.v1.RunService/IssueViewerCredential", *request,
      [this, request, response](const std::shared_ptr<Call>& call, Finish finish) {
        if (const absl::Status allowed = AllowedOnRun(*call, request->run()); !allowed.ok()) {
          return finish(allowed);
        }
        listener_waits_.Wait(
            request->run(), ListenerKind::kStatus,
            [this, request, response, call,
             finish = std::move(finish)](absl::StatusOr<RunRecord> run) mutable {
              finish(run.ok() ? SignViewer(*request, *run, UriOf(*call), response) : run.status());
            });
      });
}

absl::Status RunService::SetStatus(Call& call, const v1::SetStatusListenerRequest& request,
                                   v1::Run* response) {
  RETURN_IF_ERROR(AllowedOnRun(call, request.run()));
  RETURN_IF_ERROR(status_listeners_.Set(request.run(), request.client_ca_pem(),
                                        request.certificate_pem(), request.key_pem(), UriOf(call)));
  const auto run = runs_.Get(request.run());
  if (run.ok()) *response = ToProto(*run);
  return run.status();
}

grpc::ServerUnaryReactor* RunService::SetStatusListener(grpc::CallbackServerContext* context,
                                                        const v1::SetStatusListenerRequest* request,
                                                        v1::Run* response) {
  return Answer(
      runtime_, context, "/muster.v1.RunService/SetStatusListener", *request,
      [this, request, response](Call& call) { return SetStatus(call, *request, response); });
}

}  // namespace muster
