#include "services/aggregator/testing/test_upload.h"

#include <chrono>

#include "services/common/base/crc32c.h"
#include "services/common/base/sha256.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/status.h"

namespace muster::testing {
namespace {

// A call that hangs ends with an error instead of the test's time limit.
void Prepare(const TestMetadata& metadata, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  for (const auto& [key, value] : metadata) context->AddMetadata(key, value);
}

}  // namespace

absl::StatusOr<v1::OpenUploadResponse> OpenTestUpload(const std::shared_ptr<grpc::Channel>& channel,
                                                      const std::string& run,
                                                      const std::string& plugin,
                                                      const std::string& node,
                                                      const TestMetadata& metadata) {
  v1::OpenUploadRequest request;
  *request.mutable_description() = SmallResult(run, plugin, node, "").description();
  v1::OpenUploadResponse opened;
  grpc::ClientContext context;
  Prepare(metadata, &context);
  const grpc::Status status =
      v1::ResultService::NewStub(channel)->OpenUpload(&context, request, &opened);
  if (!status.ok()) return FromGrpc(status);
  return opened;
}

v1::Signature SignTestResult(const TestIdentity& signer, const std::string& run,
                             const std::string& plugin, const std::string& node,
                             const std::string& body) {
  const SignedResult result = {
      run, plugin, node, 1, static_cast<int64_t>(body.size()), DigestBytes(Sha256::Of(body))};
  v1::Signature signature;
  signature.set_value(SignResult(*PrivateKey::FromPem(signer.key_pem), result).value());
  signature.set_certificate_chain_pem(signer.chain_pem);
  return signature;
}

TestUploadStream::TestUploadStream(const std::shared_ptr<grpc::Channel>& channel,
                                   const v1::OpenUploadResponse& opened,
                                   const TestMetadata& metadata)
    : stub_(v1::ResultService::NewStub(channel)) {
  Prepare(metadata, &context_);
  stream_ = stub_->Upload(&context_);
  v1::UploadRequest request;
  request.mutable_start()->set_upload_id(opened.upload_id());
  request.mutable_start()->set_epoch(opened.epoch());
  stream_->Write(request);
}

TestUploadStream::~TestUploadStream() {
  Cancel();
  End().status().IgnoreError();
}

void TestUploadStream::SendChunk(int64_t offset, const std::string& data) {
  v1::UploadRequest request;
  v1::UploadRequest::Chunk* chunk = request.mutable_chunk();
  chunk->set_offset(offset);
  chunk->set_raw_size(static_cast<int64_t>(data.size()));
  chunk->set_crc32c(Crc32c(data));
  chunk->set_data(data);
  if (stream_ != nullptr) stream_->Write(request);
}

void TestUploadStream::SendFinish(const std::string& body, const v1::Signature& signature) {
  v1::UploadRequest request;
  v1::UploadRequest::Finish* finish = request.mutable_finish();
  finish->set_size(static_cast<int64_t>(body.size()));
  finish->set_crc32c(Crc32c(body));
  finish->set_sha256(DigestBytes(Sha256::Of(body)));
  *finish->mutable_signature() = signature;
  if (stream_ != nullptr) stream_->Write(request);
}

bool TestUploadStream::AwaitWritten(int64_t written) {
  v1::UploadResponse response;
  while (stream_ != nullptr && stream_->Read(&response)) {
    if (response.ack().written() >= written) return true;
  }
  return false;
}

absl::StatusOr<v1::UploadResponse> TestUploadStream::End() {
  if (stream_ == nullptr) return absl::FailedPreconditionError("the stream has ended before");
  v1::UploadResponse response;
  v1::UploadResponse last;
  while (stream_->Read(&response)) last = response;
  const grpc::Status status = stream_->Finish();
  stream_.reset();
  if (!status.ok()) return FromGrpc(status);
  return last;
}

}  // namespace muster::testing
