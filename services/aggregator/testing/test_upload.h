// A client of the upload RPCs whose messages a test sends one by one.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_UPLOAD_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_UPLOAD_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/aggregator/testing/test_fleet.h"
#include "services/common/identity/result_signature.h"

namespace muster::testing {

using TestMetadata = std::vector<std::pair<std::string, std::string>>;

// Calls OpenUpload for a result of `node`, without its size.
absl::StatusOr<v1::OpenUploadResponse> OpenTestUpload(const std::shared_ptr<grpc::Channel>& channel,
                                                      const std::string& run,
                                                      const std::string& plugin,
                                                      const std::string& node,
                                                      const TestMetadata& metadata = {});

// The signature of `signer` over attempt 1 of a result.
v1::Signature SignTestResult(const TestIdentity& signer, const std::string& run,
                             const std::string& plugin, const std::string& node,
                             const std::string& body);

// One Upload stream. The constructor sends its start; the destructor cancels it. Not thread-safe.
class TestUploadStream {
 public:
  TestUploadStream(const std::shared_ptr<grpc::Channel>& channel,
                   const v1::OpenUploadResponse& opened, const TestMetadata& metadata = {});
  ~TestUploadStream();

  void SendChunk(int64_t offset, const std::string& data);
  void SendFinish(const std::string& body, const v1::Signature& signature = {});

  // Reads until at least `written` bytes are acknowledged; false if the stream ends before.
  bool AwaitWritten(int64_t written);

  // Reads the stream to its end; returns its last message.
  absl::StatusOr<v1::UploadResponse> End();

  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::ResultService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::UploadRequest, v1::UploadResponse>> stream_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_TEST_UPLOAD_H_
