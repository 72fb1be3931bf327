// A fleet, and machines that join it over TLS.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_JOIN_FIXTURE_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_JOIN_FIXTURE_H_

#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "muster/v1/join.grpc.pb.h"
#include "services/common/identity/join_token.h"
#include "services/common/identity/key.h"
#include "services/common/identity/signing_request.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

// A machine with its key and its join request.
struct Machine {
  PrivateKey key = *PrivateKey::Generate();
  std::string csr = *CreateSigningRequest(key);
};

// Not thread-safe.
class JoinFixture : public ::testing::Test {
 protected:
  struct Token {
    std::string id;
    PrivateKey key = *PrivateKey::Generate();
  };

  template <typename Service, typename Request, typename Response>
  absl::StatusOr<Response> Call(const std::shared_ptr<grpc::Channel>& channel,
                                grpc::Status (Service::Stub::*method)(grpc::ClientContext*,
                                                                      const Request&, Response*),
                                const Request& request) {
    return CallUnary<Service>(channel, method, request);
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Enroll(grpc::Status (v1::EnrollmentService::Stub::*method)(
                                      grpc::ClientContext*, const Request&, Response*),
                                  const Request& request) {
    return Call<v1::EnrollmentService>(fleet_.Connect(fleet_.admin()), method, request);
  }

  v1::CreateJoinTokenRequest Request(const Token& token, const std::string& node, int count) {
    v1::CreateJoinTokenRequest request;
    request.set_id(token.id);
    request.set_public_key_pem(*token.key.public_key().ToPem());
    request.set_node(node);
    request.set_count(count);
    return request;
  }

  Token NewToken() {
    return Token{absl::StrCat("0123456789abcdef01234567", 10'000'000 + tokens_++)};
  }

  Token Create(const std::string& node, int count = 0) {
    const Token token = NewToken();
    const auto created =
        Enroll(&v1::EnrollmentService::Stub::CreateJoinToken, Request(token, node, count));
    EXPECT_TRUE(created.ok()) << created.status();
    return token;
  }

  v1::JoinRequest JoinRequestOf(const Token& token, const Machine& machine,
                                const std::string& node) {
    v1::JoinRequest request;
    request.set_token_id(token.id);
    request.set_node(node);
    request.set_csr_pem(machine.csr);
    request.set_proof(*token.key.Sign(JoinProofText(token.id, node, machine.csr)));
    return request;
  }

  absl::StatusOr<v1::NodeCertificate> Join(const v1::JoinRequest& request) {
    return Call<v1::JoinService>(fleet_.ConnectToJoin(), &v1::JoinService::Stub::Join, request);
  }
  absl::StatusOr<v1::NodeCertificate> Join(const Token& token, const Machine& machine,
                                           const std::string& node = "") {
    return Join(JoinRequestOf(token, machine, node));
  }

  absl::StatusOr<v1::NodeCertificate> Rejoin(const std::string& chain, const PrivateKey& key,
                                             const Machine& next) {
    v1::RejoinRequest request;
    request.set_certificate_chain_pem(chain);
    request.set_csr_pem(next.csr);
    request.set_proof(*key.Sign(ReturnProofText(next.csr)));
    return Call<v1::JoinService>(fleet_.ConnectToJoin(), &v1::JoinService::Stub::Rejoin, request);
  }

  static TestIdentity IdentityOf(const v1::NodeCertificate& certificate, const Machine& machine) {
    return {certificate.certificate_chain_pem(), std::string(machine.key.ToPkcs8Pem()->view())};
  }

  absl::StatusOr<v1::IssuedCertificate> Renew(const TestIdentity& as, const Machine& next) {
    v1::RenewCertificateRequest request;
    request.set_csr_pem(next.csr);
    return Call<v1::IdentityService>(fleet_.Connect(as),
                                     &v1::IdentityService::Stub::RenewCertificate, request);
  }

  absl::StatusOr<v1::EnrolledNode> Revoke(const std::string& node) {
    v1::RevokeNodeRequest request;
    request.set_node(node);
    request.set_reason("stolen");
    return Enroll(&v1::EnrollmentService::Stub::RevokeNode, request);
  }

  TestFleet fleet_;

 private:
  int tokens_ = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_JOIN_FIXTURE_H_
