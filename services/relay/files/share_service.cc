#include "services/relay/files/share_service.h"

#include <chrono>
#include <memory>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/common/errors/shares.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/identity/share_signature.h"
#include "services/common/rpc/call_later.h"
#include "services/common/rpc/limits.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/files/share_reader.h"
#include "services/relay/files/share_signer.h"
#include "services/relay/files/share_upload_handler.h"
#include "services/relay/files/target_route.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(10);
constexpr absl::Duration kSignedWithin = absl::Hours(1);

const std::string* NodeOf(const Caller& caller) {
  const auto* node = std::get_if<NodeIdentity>(&caller.identity.name);
  return node == nullptr ? nullptr : &node->name;
}

const std::string* RelayOf(const Caller& caller) {
  const auto* service = std::get_if<ServiceIdentity>(&caller.identity.name);
  return service != nullptr && service->role == ServiceRole::kRelay ? &service->name : nullptr;
}

// Calls the parent, and `done` on a thread of gRPC.
template <typename Request, typename Response>
void CallParent(const std::shared_ptr<grpc::Channel>& channel,
                LaterMethod<v1::ShareService, Request, Response> method, Request request,
                std::function<void(absl::Status, Response)> done) {
  CallLater<v1::ShareService, Request, Response>(channel, method, std::move(request), kAnswerWithin,
                                                 std::move(done));
}

bool IsOperator(const Caller& caller) {
  return NodeOf(caller) == nullptr && RelayOf(caller) == nullptr;
}

// Makes a callback copyable, as gRPC requires.
std::shared_ptr<Finish> Shared(Finish finish) {
  return std::make_shared<Finish>(std::move(finish));
}

// Returns whether the copy makes sending the file again unnecessary.
bool Covers(const v1::Share& copy, const v1::SharedFile& file) {
  return copy.file().sha256() == file.sha256() && copy.file().size() == file.size() &&
         (copy.state() == v1::SHARE_STATE_IN_TRANSIT ||
          copy.state() == v1::SHARE_STATE_DELIVERED) &&
         ExpiryOf(copy.file()) >= ExpiryOf(file);
}

}  // namespace

bool ShareService::IsUnknown(const std::string& target) const {
  return FindTargetRoute(parts_.tree, target).kind == TargetRoute::Kind::kUnknown;
}

absl::Status ShareService::IsChild(const Call& call) const {
  const std::string* relay = RelayOf(call.caller());
  if (relay != nullptr && parts_.tree.NextHop(*relay) == *relay) return absl::OkStatus();
  return errors::NoLiveStatement(relay == nullptr ? "the caller" : *relay, parts_.tree.name());
}

// Returns whether the caller may upload this file. Sets `retain` if it must hold the file instead.
absl::Status ShareService::Admit(Call& call, const v1::OpenShareRequest& request,
                                 bool* retain) const {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  const v1::SharedFile& file = request.file();
  RETURN_IF_ERROR(ValidateSharedFile(file));
  const v1::ShareKey& key = file.key();
  const absl::Time now = parts_.clock.Now();
  if (const std::string* node = NodeOf(call.caller())) {
    if (*node != key.source()) return errors::ShareNotYours(*node, key);
    if (parts_.tree.NextHop(*node) != *node)
      return errors::NoLiveStatement(*node, parts_.tree.name());
    if (absl::FromUnixSeconds(file.sign_time().seconds()) < now - kSignedWithin) {
      return errors::SignedTooLongAgo();
    }
  } else {
    RETURN_IF_ERROR(IsChild(call));
    const std::string* relay = RelayOf(call.caller());
    const auto route = FindTargetRoute(parts_.tree, key.target());
    *retain = request.only_if_elsewhere() && (route.kind == TargetRoute::Kind::kUnknown ||
                                              parts_.tree.IsDownstreamOf(key.target(), *relay));
    if (*retain) return absl::OkStatus();
  }
  return VerifySigner(file, parts_);
}

void ShareService::Begin(const std::string& opener, const v1::SharedFile& file,
                         v1::OpenShareResponse* response, Finish finish) {
  parts_.store.OpenUpload(file, /*from_parent=*/false, opener,
                          [this, response, finish = std::move(finish)](auto opened) mutable {
                            if (!opened.ok()) return finish(opened.status());
                            if (opened->existing) {
                              *response->mutable_existing() = std::move(opened->existing->share);
                              helpers_.routing.Wake();
                              return finish(absl::OkStatus());
                            }
                            response->set_upload_id(opened->upload_id);
                            response->set_epoch(opened->epoch);
                            response->set_offset(opened->offset);
                            response->set_chunk_max(kChunkMaxLarge);
                            finish(absl::OkStatus());
                          });
}

grpc::ServerUnaryReactor* ShareService::OpenShare(grpc::CallbackServerContext* context,
                                                  const v1::OpenShareRequest* request,
                                                  v1::OpenShareResponse* response) {
  return AnswerLater(
      disk_, context, "/muster.v1.ShareService/OpenShare", {*request, response},
      [=, this](const std::shared_ptr<Call>& call, Finish finish) {
        bool retain = false;
        const absl::Status admitted = Admit(*call, *request, &retain);
        if (!admitted.ok()) return finish(admitted);
        response->set_retain(retain);
        if (retain) return finish(absl::OkStatus());
        const std::string opener = OpenerOf(call->caller().identity);
        const std::string& target = request->file().key().target();
        if (!parts_.is_root || !IsUnknown(target)) {
          return Open(opener, request->file(), response, std::move(finish));
        }
        if (target == parts_.tree.name()) return finish(errors::TargetIsRelay(target));
        // The register knows why: the node never joined, or was revoked. After its start the root
        // relay may not know all nodes that joined.
        helpers_.aggregator.CheckJoined(
            target, [=, this, done = Shared(std::move(finish))](const absl::Status& registered) {
              const bool refused =
                  registered.ok() && helpers_.routing.settled() && IsUnknown(target);
              const absl::Status joined = refused ? errors::TargetUnknown(target) : registered;
              const bool queued = joined.ok() && disk_.executor->Post(opener, [=, this] {
                Open(opener, request->file(), response, std::move(*done));
              });
              if (!queued) (*done)(joined.ok() ? errors::Overloaded() : joined);
            });
      });
}

void ShareService::Open(const std::string& opener, const v1::SharedFile& file,
                        v1::OpenShareResponse* response, Finish finish) {
  const auto known = parts_.store.Find(file.key());
  const auto parent = parts_.peers.Parent();
  if (parent == nullptr || !known || known->stage != ShareStage::kPassedUp ||
      !Covers(known->share, file)) {
    return Begin(opener, file, response, std::move(finish));
  }
  // The parent knows whether it still has the file.
  v1::GetShareRequest ask;
  *ask.mutable_key() = file.key();
  CallParent<v1::GetShareRequest, v1::Share>(
      parent, &v1::ShareService::Stub::async::GetShare, std::move(ask),
      [=, this, file = &file, done = Shared(std::move(finish))](const absl::Status& status,
                                                                v1::Share share) {
        if (status.ok() && Covers(share, *file)) {
          *response->mutable_existing() = std::move(share);
          return (*done)(absl::OkStatus());
        }
        const bool queued =
            disk_.executor->Post([=, this] { Begin(opener, *file, response, std::move(*done)); });
        if (!queued) (*done)(errors::Overloaded());
      });
}

grpc::ServerReadReactor<v1::UploadShareRequest>* ShareService::UploadShare(
    grpc::CallbackServerContext* context, v1::Share* response) {
  return ShareUploadHandler::Start(disk_, context, parts_.store, helpers_.routing, response);
}

absl::Status ShareService::AuthorizeParty(Call& call, const v1::ShareKey& key) const {
  const std::string* node = NodeOf(call.caller());
  const std::string* relay = RelayOf(call.caller());
  const bool is_operator = IsOperator(call.caller());
  RETURN_IF_ERROR(call.Authorize(is_operator ? Resource::Fleet() : Resource::Own()));
  RETURN_IF_ERROR(ValidateShareKey(key));
  if (is_operator) return absl::OkStatus();
  if (node != nullptr) {
    return *node == key.source() || *node == key.target() ? absl::OkStatus()
                                                          : errors::ShareNotYours(*node, key);
  }
  return parts_.tree.IsDownstreamOf(key.source(), *relay) ||
                 parts_.tree.IsDownstreamOf(key.target(), *relay)
             ? absl::OkStatus()
             : errors::ShareNotYours(*relay, key);
}

grpc::ServerUnaryReactor* ShareService::GetShare(grpc::CallbackServerContext* context,
                                                 const v1::GetShareRequest* request,
                                                 v1::Share* response) {
  return AnswerLater(disk_, context, "/muster.v1.ShareService/GetShare", {*request, response},
                     [=, this](const std::shared_ptr<Call>& call, Finish finish) {
                       const absl::Status allowed = AuthorizeParty(*call, request->key());
                       if (!allowed.ok()) return finish(allowed);
                       if (!IsOperator(call->caller())) {
                         return Get(*request, response, std::move(finish));
                       }
                       helpers_.fleet_index.Get(*request, [=, done = Shared(std::move(finish))](
                                                              absl::StatusOr<v1::Share> share) {
                         if (share.ok()) *response = *std::move(share);
                         (*done)(share.status());
                       });
                     });
}

void ShareService::Get(const v1::GetShareRequest& request, v1::Share* response,
                       Finish finish) const {
  auto known = helpers_.local_index.Get(request.key());
  if (!known) return finish(errors::ShareNotFound(request.key()));
  *response = std::move(known->share);
  const auto parent = parts_.peers.Parent();
  if (parent == nullptr || !known->passed_up) return finish(absl::OkStatus());
  // Without an answer of the parent, the last known state is returned.
  v1::GetShareRequest ask;
  *ask.mutable_key() = request.key();
  CallParent<v1::GetShareRequest, v1::Share>(
      parent, &v1::ShareService::Stub::async::GetShare, std::move(ask),
      [response, done = Shared(std::move(finish))](const absl::Status& status, v1::Share share) {
        if (status.ok() && share.file().sha256() == response->file().sha256()) {
          *response = std::move(share);
        }
        (*done)(absl::OkStatus());
      });
}

grpc::ServerWriteReactor<v1::FileChunk>* ShareService::ReadShare(
    grpc::CallbackServerContext* context, const v1::ReadShareRequest* request) {
  return StartSourceStream<v1::FileChunk>(
      disk_, context, "/muster.v1.ShareService/ReadShare", kFileStreams,
      [this, request = *request](Call& call, const std::function<void()>&)
          -> absl::StatusOr<std::unique_ptr<StreamSource<v1::FileChunk>>> {
        RETURN_IF_ERROR(AuthorizeParty(call, request.key()));
        // The source cannot read its own file; a relay reads for the target only.
        const std::string* node = NodeOf(call.caller());
        const std::string* relay = RelayOf(call.caller());
        if ((node != nullptr && *node != request.key().target()) ||
            (relay != nullptr && !parts_.tree.IsDownstreamOf(request.key().target(), *relay))) {
          return errors::ShareNotYours(node != nullptr ? *node : *relay, request.key());
        }
        const auto found = parts_.store.Find(request.key());
        if (!found || found->stage != ShareStage::kHeld) {
          return errors::ShareNotFound(request.key());
        }
        if (!request.sha256().empty() && request.sha256() != found->share.file().sha256()) {
          return errors::ShareReplaced(request.key());
        }
        ASSIGN_OR_RETURN(auto source, parts_.store.Read(*found, request.offset()));
        return std::make_unique<ShareReader>(std::move(source), request.offset());
      });
}

grpc::ServerUnaryReactor* ShareService::ListShares(grpc::CallbackServerContext* context,
                                                   const v1::ListSharesRequest* request,
                                                   v1::ListSharesResponse* response) {
  return AnswerLater(disk_, context, "/muster.v1.ShareService/ListShares", {*request, response},
                     [=, this](const std::shared_ptr<Call>& call, Finish finish) {
                       const std::string* node = NodeOf(call->caller());
                       const absl::Status allowed =
                           call->Authorize(node == nullptr ? Resource::Fleet() : Resource::Own());
                       if (!allowed.ok()) return finish(allowed);
                       const auto reply = [response, done = Shared(std::move(finish))](
                                              absl::StatusOr<v1::ListSharesResponse> list) {
                         if (list.ok()) *response = *std::move(list);
                         (*done)(list.status());
                       };
                       if (node != nullptr) return reply(helpers_.local_index.List(*request, node));
                       helpers_.fleet_index.List(*request, reply);
                     });
}

grpc::ServerUnaryReactor* ShareService::RemoveShare(grpc::CallbackServerContext* context,
                                                    const v1::RemoveShareRequest* request,
                                                    v1::RemoveShareResponse* response) {
  return AnswerLater(
      disk_, context, "/muster.v1.ShareService/RemoveShare", {*request, response},
      [=, this](const std::shared_ptr<Call>& call, Finish finish) {
        const absl::Status allowed = AuthorizeParty(*call, request->key());
        if (!allowed.ok()) return finish(allowed);
        if (!IsOperator(call->caller())) return Remove(*request, std::move(finish));
        helpers_.fleet_index.Remove(
            *request, UriOf(call->caller()),
            [done = Shared(std::move(finish))](const absl::Status& status) { (*done)(status); });
      });
}

void ShareService::Remove(const v1::RemoveShareRequest& request, Finish finish) const {
  bool at_parent = false;
  const absl::Status status = helpers_.local_index.Remove(request.key(), &at_parent);
  // The parent may know a file that this relay has forgotten (ShareRecords).
  const bool ask_parent = at_parent || (absl::IsNotFound(status) && !parts_.is_root);
  if (!ask_parent) return finish(status);
  const auto parent = parts_.peers.Parent();
  if (parent == nullptr) return finish(errors::RelayCutOff());
  v1::RemoveShareRequest ask;
  *ask.mutable_key() = request.key();
  CallParent<v1::RemoveShareRequest, v1::RemoveShareResponse>(
      parent, &v1::ShareService::Stub::async::RemoveShare, std::move(ask),
      [done = Shared(std::move(finish))](const absl::Status& answer,
                                         const v1::RemoveShareResponse&) {
        const bool reached = !absl::IsUnavailable(answer) && !absl::IsDeadlineExceeded(answer);
        (*done)(reached ? answer : errors::RelayCutOff());
      });
}

grpc::ServerUnaryReactor* ShareService::ReportShare(grpc::CallbackServerContext* context,
                                                    const v1::ReportShareRequest* request,
                                                    v1::ReportShareResponse* response) {
  return Answer(disk_, context, "/muster.v1.ShareService/ReportShare", {*request, response},
                [=, this](Call& call) { return Report(call, *request); });
}

// Ignores a report that does not match the record, because it is out of date. After an error the
// child would repeat it.
absl::Status ShareService::Report(Call& call, const v1::ReportShareRequest& request) {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  const v1::ShareKey& key = request.share().file().key();
  RETURN_IF_ERROR(ValidateShareKey(key));
  RETURN_IF_ERROR(IsChild(call));
  RETURN_IF_ERROR(CheckReported(request.share()));
  const std::string* relay = RelayOf(call.caller());
  const auto found = parts_.store.Find(key);
  if (!found || found->stage == ShareStage::kEnded) return absl::OkStatus();
  const std::string& sha256 = request.share().file().sha256();
  const bool removed = request.share().state() == v1::SHARE_STATE_REMOVED;
  if (sha256 != found->share.file().sha256() && !(removed && found->removing)) {
    return absl::OkStatus();
  }
  const bool was_downstream = found->stage == ShareStage::kPassedDown && found->child == *relay;
  const bool offered =
      found->stage == ShareStage::kHeld && parts_.tree.IsDownstreamOf(key.target(), *relay);
  if (!was_downstream && !offered) return absl::OkStatus();
  ShareRecord is = *found;
  const bool stored = request.share().state() == v1::SHARE_STATE_IN_TRANSIT ||
                      request.share().state() == v1::SHARE_STATE_DELIVERED;
  // A report on an earlier signature: the child fetches the offered file, or has fetched it.
  if (offered &&
      request.share().file().sign_time().seconds() < found->share.file().sign_time().seconds()) {
    return absl::OkStatus();
  }
  if (stored && is.removing) return absl::OkStatus();
  is.stage = stored ? ShareStage::kPassedDown : ShareStage::kEnded;
  is.child = *relay;
  is.removing = false;
  is.share.set_state(request.share().state());
  is.share.set_reason(std::string(CutUtf8(request.share().reason(), kMaxShareReason)));
  is.share.set_relay(request.share().relay());
  is.share.mutable_change_time()->set_seconds(absl::ToUnixSeconds(parts_.clock.Now()));
  is.unreported = is.from_parent;
  const absl::Status updated = parts_.store.Update(*found, std::move(is));
  helpers_.routing.Wake();
  // The child repeats its report.
  return absl::IsAborted(updated) ? absl::UnavailableError("the shared file has changed meanwhile")
                                  : updated;
}

// Each relay on the route checks that the answering relay is a descendant of the forwarding one.
grpc::ServerUnaryReactor* ShareService::AnswerShareQuery(grpc::CallbackServerContext* context,
                                                         const v1::AnswerShareQueryRequest* request,
                                                         v1::AnswerShareQueryResponse* response) {
  return AnswerLater(disk_, context, "/muster.v1.ShareService/AnswerShareQuery",
                     {*request, response},
                     [=, this](const std::shared_ptr<Call>& call, Finish finish) {
                       absl::Status status = call->Authorize(Resource::Own());
                       if (status.ok()) status = IsChild(*call);
                       if (!status.ok()) return finish(status);
                       const std::string& child = *RelayOf(call->caller());
                       if (parts_.tree.NextHop(request->relay()) != child) {
                         return finish(errors::NoLiveStatement(request->relay(), child));
                       }
                       if (parts_.is_root) {
                         helpers_.queries.HandleAnswer(*request);
                         return finish(absl::OkStatus());
                       }
                       const auto parent = parts_.peers.Parent();
                       if (parent == nullptr) return finish(errors::RelayCutOff());
                       CallParent<v1::AnswerShareQueryRequest, v1::AnswerShareQueryResponse>(
                           parent, &v1::ShareService::Stub::async::AnswerShareQuery, *request,
                           [done = Shared(std::move(finish))](const absl::Status& answer,
                                                              const v1::AnswerShareQueryResponse&) {
                             (*done)(answer);
                           });
                     });
}

}  // namespace muster
