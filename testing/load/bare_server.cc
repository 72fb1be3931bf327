// A server of plain gRPC that receives results and keeps nothing of them: what gRPC and TLS alone
// cost. testing/benchmark compares the aggregator with it. It uses the certificate of an
// aggregator.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/common/base/process_setup.h"

ABSL_FLAG(int, port, 0, "port on the loopback interface, on which the server listens");
ABSL_FLAG(std::string, tls, "", "folder with key.pem, cert.pem and ca.pem");

namespace muster::load {
namespace {

constexpr int64_t kChunk = 1 << 20;
constexpr int64_t kWindow = 8 << 20;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Acknowledges each chunk as written when it has arrived.
class UploadReactor : public grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse> {
 public:
  UploadReactor() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (request_.has_finish()) {
      response_.mutable_committed()->set_size(received_);
      return StartWriteAndFinish(&response_, {}, grpc::Status::OK);
    }
    received_ += static_cast<int64_t>(request_.chunk().data().size());
    if (!request_.has_chunk()) return StartRead(&request_);
    response_.mutable_ack()->set_written(received_);
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&request_);
  }

  void OnDone() override { delete this; }

 private:
  v1::UploadRequest request_;
  v1::UploadResponse response_;
  int64_t received_ = 0;
};

class BareService : public v1::ResultService::CallbackService {
 public:
  grpc::ServerUnaryReactor* SubmitResult(grpc::CallbackServerContext* context,
                                         const v1::SubmitResultRequest* request,
                                         v1::Result* response) override {
    *response->mutable_key() = request->description().key();
    response->set_size(static_cast<int64_t>(request->body().size()));
    return Ok(context);
  }

  grpc::ServerUnaryReactor* OpenUpload(grpc::CallbackServerContext* context,
                                       const v1::OpenUploadRequest*,
                                       v1::OpenUploadResponse* response) override {
    response->set_chunk_max(kChunk);
    response->set_window(kWindow);
    return Ok(context);
  }

  grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* Upload(
      grpc::CallbackServerContext*) override {
    return new UploadReactor;
  }

 private:
  static grpc::ServerUnaryReactor* Ok(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

int Run() {
  if (const absl::Status status = SetUpProcess(); !status.ok()) {
    std::cerr << "bare_server: " << status << "\n";
    return 1;
  }
  SignalWaiter signals;
  const std::string folder = absl::GetFlag(FLAGS_tls);
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = Read(folder + "/ca.pem");
  tls.pem_key_cert_pairs.push_back({Read(folder + "/key.pem"), Read(folder + "/cert.pem")});
  BareService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.SetMaxReceiveMessageSize(2 * kChunk);
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", absl::GetFlag(FLAGS_port)),
                           grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    std::cerr << "bare_server: cannot listen with the certificate in " << folder << "\n";
    return 1;
  }
  signals.Wait();
  server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Receives results and keeps nothing of them.");
  absl::ParseCommandLine(argc, argv);
  return muster::load::Run();
}
