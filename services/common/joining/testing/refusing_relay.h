// A revoked relay that serves the address for joins, for tests.
#ifndef MUSTER_SERVICES_COMMON_JOINING_TESTING_REFUSING_RELAY_H_
#define MUSTER_SERVICES_COMMON_JOINING_TESTING_REFUSING_RELAY_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/v1/join.grpc.pb.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::testing {

// Passes on the fleet's refusal of the relay itself.
class RefusingRelay final : public v1::JoinService::Service {
 public:
  explicit RefusingRelay(const TestFleet& fleet) {
    const TestIdentity relay = fleet.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({relay.key_pem, relay.chain_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  grpc::Status Join(grpc::ServerContext*, const v1::JoinRequest*, v1::NodeCertificate*) override {
    return ToGrpc(errors::CallerRevoked());
  }
  grpc::Status Rejoin(grpc::ServerContext*, const v1::RejoinRequest*,
                      v1::NodeCertificate*) override {
    return ToGrpc(errors::CallerRevoked());
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_JOINING_TESTING_REFUSING_RELAY_H_
