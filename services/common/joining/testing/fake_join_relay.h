// A faulty or hostile relay that serves the address for joins, for tests.
#ifndef MUSTER_SERVICES_COMMON_JOINING_TESTING_FAKE_JOIN_RELAY_H_
#define MUSTER_SERVICES_COMMON_JOINING_TESTING_FAKE_JOIN_RELAY_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/join.grpc.pb.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

// Gives the same answer to every call.
class FakeJoinRelay final : public v1::JoinService::Service {
 public:
  FakeJoinRelay(const TestFleet& fleet, absl::StatusOr<v1::NodeCertificate> answer)
      : answer_(std::move(answer)) {
    const TestIdentity relay = fleet.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({relay.key_pem, relay.chain_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*,
                    v1::NodeCertificate* response) override {
    return Answer(response);
  }
  grpc::Status Rejoin(grpc::ServerContext*, const v1::RejoinRequest*,
                      v1::NodeCertificate* response) override {
    return Answer(response);
  }

 private:
  grpc::Status Answer(v1::NodeCertificate* response) const {
    if (!answer_.ok()) return ToGrpc(answer_.status());
    *response = *answer_;
    return grpc::Status::OK;
  }

  const absl::StatusOr<v1::NodeCertificate> answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Returns the fleet's refusal of a revoked relay itself, which the relay passes on.
inline absl::Status RefusalOfTheRelay() { return errors::CallerRevoked(); }

// Returns a certificate of the fleet for the node, but for another key.
inline v1::NodeCertificate CertificateForAnotherKey(const TestFleet& fleet,
                                                    const std::string& node) {
  v1::NodeCertificate certificate;
  certificate.set_node(node);
  certificate.set_certificate_chain_pem(fleet.Issue(NodeIdentity{node}).chain_pem);
  return certificate;
}

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_JOINING_TESTING_FAKE_JOIN_RELAY_H_
