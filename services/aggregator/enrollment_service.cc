#include "services/aggregator/enrollment_service.h"

#include <string_view>

#include "absl/functional/any_invocable.h"
#include "services/aggregator/convert.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/identity.h"

namespace muster {
namespace {

template <typename Map>
Labels FromProto(const Map& labels) {
  return Labels(labels.begin(), labels.end());
}

v1::JoinToken ToProto(const JoinTokenRecord& record) {
  v1::JoinToken token;
  token.set_id(record.id);
  token.set_node(record.node);
  token.set_count(record.count);
  token.mutable_labels()->insert(record.labels.begin(), record.labels.end());
  token.set_created_by(record.created_by);
  *token.mutable_create_time() = ToTimestamp(record.created_at);
  *token.mutable_expire_time() = ToTimestamp(record.expires_at);
  token.set_revoked(record.revoked);
  token.mutable_joined()->Assign(record.joined.begin(), record.joined.end());
  token.set_joined_count(record.joined_count);
  token.set_relay(record.relay);
  token.mutable_parents()->Assign(record.parents.begin(), record.parents.end());
  return token;
}

v1::EnrolledNode ToProto(const NodeRecord& record) {
  v1::EnrolledNode node;
  node.set_name(record.name);
  node.set_uri(record.uri);
  node.mutable_labels()->insert(record.labels.begin(), record.labels.end());
  *node.mutable_join_time() = ToTimestamp(record.joined_at);
  node.set_join_token(record.join_token);
  if (record.expires_at != 0) *node.mutable_expire_time() = ToTimestamp(record.expires_at);
  if (record.revoked_at != 0) {
    node.set_revoked(true);
    *node.mutable_revoke_time() = ToTimestamp(record.revoked_at);
    node.set_revoke_reason(record.revoke_reason);
    node.set_revoked_by(record.revoked_by);
  }
  node.set_is_relay(record.relay);
  node.mutable_relay_targets()->Assign(record.relay_targets.begin(), record.relay_targets.end());
  node.mutable_join_targets()->Assign(record.join_targets.begin(), record.join_targets.end());
  node.mutable_parents()->Assign(record.parents.begin(), record.parents.end());
  return node;
}

// Only for operators; `handler` gets the caller.
grpc::ServerUnaryReactor* AnswerOperator(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    const UnaryMessages& messages, absl::AnyInvocable<absl::Status(const Actor& actor)> handler) {
  return Answer(runtime, context, method, messages,
                [handler = std::move(handler)](Call& call) mutable -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  return handler(ActorOf(call.caller()));
                });
}

}  // namespace

grpc::ServerUnaryReactor* EnrollmentService::CreateJoinToken(
    grpc::CallbackServerContext* context, const v1::CreateJoinTokenRequest* request,
    v1::CreateJoinTokenResponse* response) {
  return AnswerOperator(
      runtime_, context, "/muster.v1.EnrollmentService/CreateJoinToken", {*request, response},
      [this, request, response](const Actor& actor) -> absl::Status {
        JoinTokenRecord wanted;
        wanted.id = request->id();
        wanted.public_key_pem = request->public_key_pem();
        wanted.node = request->node();
        wanted.count = request->count();
        wanted.labels = FromProto(request->labels());
        wanted.created_by = actor.uri;  // never behind a gateway
        wanted.relay = request->relay();
        wanted.parents.assign(request->parents().begin(), request->parents().end());
        ASSIGN_OR_RETURN(const auto token,
                         enrollment_.CreateToken(std::move(wanted), request->has_ttl()
                                                                        ? FromProto(request->ttl())
                                                                        : kDefaultTokenLife));
        ASSIGN_OR_RETURN(const auto targets, enrollment_.TargetsOfParents(token));
        *response->mutable_token() = ToProto(token);
        response->mutable_join_targets()->Assign(targets.join_targets.begin(),
                                                 targets.join_targets.end());
        for (const std::string& target : join_targets_) response->add_join_targets(target);
        response->set_fleet_ca_pem(fleet_ca_pem_);
        response->set_command_ca_pem(command_ca_pem_);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* EnrollmentService::ListJoinTokens(
    grpc::CallbackServerContext* context, const v1::ListJoinTokensRequest* request,
    v1::ListJoinTokensResponse* response) {
  return AnswerOperator(runtime_, context, "/muster.v1.EnrollmentService/ListJoinTokens",
                        {*request, response}, [this, response](const Actor&) -> absl::Status {
                          ASSIGN_OR_RETURN(const auto tokens, enrollment_.Tokens());
                          for (const JoinTokenRecord& token : tokens)
                            *response->add_tokens() = ToProto(token);
                          return absl::OkStatus();
                        });
}

grpc::ServerUnaryReactor* EnrollmentService::RevokeJoinToken(
    grpc::CallbackServerContext* context, const v1::RevokeJoinTokenRequest* request,
    v1::JoinToken* response) {
  return AnswerOperator(runtime_, context, "/muster.v1.EnrollmentService/RevokeJoinToken",
                        {*request, response},
                        [this, request, response](const Actor& actor) -> absl::Status {
                          const auto token = enrollment_.RevokeToken(request->id(), actor);
                          if (token.ok()) *response = ToProto(*token);
                          return token.status();
                        });
}

grpc::ServerUnaryReactor* EnrollmentService::ListEnrolledNodes(
    grpc::CallbackServerContext* context, const v1::ListEnrolledNodesRequest* request,
    v1::ListEnrolledNodesResponse* response) {
  return AnswerOperator(
      runtime_, context, "/muster.v1.EnrollmentService/ListEnrolledNodes", {*request, response},
      [this, request, response](const Actor&) -> absl::Status {
        ASSIGN_OR_RETURN(const auto page,
                         enrollment_.Nodes(FromProto(request->labels()), request->page_token(),
                                           request->page_size()));
        for (const NodeRecord& node : page.items) *response->add_nodes() = ToProto(node);
        response->set_next_page_token(page.next);
        return absl::OkStatus();
      });
}

// A relay asks whether a file can ever reach its target; it gets no other information about the
// node.
grpc::ServerUnaryReactor* EnrollmentService::GetEnrolledNode(
    grpc::CallbackServerContext* context, const v1::GetEnrolledNodeRequest* request,
    v1::EnrolledNode* response) {
  return Answer(runtime_, context, "/muster.v1.EnrollmentService/GetEnrolledNode",
                {*request, response}, [this, request, response](Call& call) -> absl::Status {
                  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
                  ASSIGN_OR_RETURN(const auto node, enrollment_.Node(request->node()));
                  if (RoleOf(call.caller().identity) != Role::kRelay) {
                    *response = ToProto(node);
                    return absl::OkStatus();
                  }
                  response->set_name(node.name);
                  response->set_revoked(node.revoked_at != 0);
                  response->set_is_relay(node.relay);
                  return absl::OkStatus();
                });
}

grpc::ServerUnaryReactor* EnrollmentService::LabelNode(grpc::CallbackServerContext* context,
                                                       const v1::LabelNodeRequest* request,
                                                       v1::EnrolledNode* response) {
  return AnswerOperator(
      runtime_, context, "/muster.v1.EnrollmentService/LabelNode", {*request, response},
      [this, request, response](const Actor& actor) -> absl::Status {
        const auto node =
            enrollment_.Label(request->node(), FromProto(request->set()),
                              {request->remove().begin(), request->remove().end()}, actor);
        if (node.ok()) *response = ToProto(*node);
        return node.status();
      });
}

grpc::ServerUnaryReactor* EnrollmentService::RevokeNode(grpc::CallbackServerContext* context,
                                                        const v1::RevokeNodeRequest* request,
                                                        v1::EnrolledNode* response) {
  return AnswerOperator(
      runtime_, context, "/muster.v1.EnrollmentService/RevokeNode", {*request, response},
      [this, request, response](const Actor& actor) -> absl::Status {
        const auto node = enrollment_.Revoke(request->node(), request->reason(), actor);
        if (node.ok()) *response = ToProto(*node);
        return node.status();
      });
}

grpc::ServerUnaryReactor* EnrollmentService::RemoveNode(grpc::CallbackServerContext* context,
                                                        const v1::RemoveNodeRequest* request,
                                                        v1::RemoveNodeResponse* response) {
  return AnswerOperator(runtime_, context, "/muster.v1.EnrollmentService/RemoveNode",
                        {*request, response}, [this, request](const Actor& actor) -> absl::Status {
                          return enrollment_.Remove(request->node(), actor);
                        });
}

}  // namespace muster
