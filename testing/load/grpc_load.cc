// Delivers results by plain gRPC calls: the load for testing/benchmark. Results up to 64 KiB are
// sent by SubmitResult, larger ones by Upload. The (any-node) credential is the output of `muster
// credentials export`; the nodes are called node-0, node-1, ...
#include <isa-l/crc.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "muster/v1/results.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "services/common/base/zstd_frame.h"
#include "services/common/rpc/channel.h"
#include "testing/load/measurement.h"

ABSL_FLAG(std::string, credential, "", "JSON file with the credential");
ABSL_FLAG(std::string, fleet, "", "the fleet's trust domain");
ABSL_FLAG(int64_t, size, 4096, "bytes of each result");
ABSL_FLAG(int64_t, count, 1, "how many results");
ABSL_FLAG(int, senders, 1, "how many connections");
ABSL_FLAG(bool, text, false, "send lines of a log, in zstd chunks if they are uploaded");
ABSL_FLAG(std::string, target, "", "host:port; empty: the one of the credential");

namespace muster::load {
namespace {

constexpr size_t kPattern = 64 << 20;
constexpr int64_t kSmall = 64 << 10;

uint32_t Crc32c(uint32_t crc, const char* data, size_t size) {
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data));
  return ~crc32_iscsi(bytes, static_cast<int>(size), ~crc);
}

std::string Text(const grpc::Status& status) {
  return status.ok() ? "" : std::to_string(status.error_code()) + ": " + status.error_message();
}

// One connection.
class Sender {
 public:
  Sender(const nlohmann::json& credential, const std::string& pattern)
      : credential_(credential), pattern_(pattern) {
    const ChannelIdentity identity{.fleet = absl::GetFlag(FLAGS_fleet),
                                   .fleet_ca_pem = credential.at("fleet_ca_cert"),
                                   .certificate_chain_pem = credential.at("client_cert"),
                                   .private_key_pem = credential.at("client_key")};
    std::string target = absl::GetFlag(FLAGS_target);
    if (target.empty()) target = credential.at("grpc_targets").at(0);
    channel_ =
        MakeChannel(target, MakeChannelCredentials(identity, {ServiceRole::kAggregator}), true);
    stub_ = v1::ResultService::NewStub(channel_);
  }

  std::string Send(int64_t number, int64_t size) {
    return size <= kSmall ? Submit(number, size) : Upload(number, size);
  }

 private:
  void Describe(int64_t number, v1::ResultDescription* description) const {
    description->mutable_key()->set_run(credential_.at("run").get<std::string>());
    description->mutable_key()->set_plugin(credential_.at("plugin").get<std::string>());
    description->mutable_key()->set_node("node-" + std::to_string(number));
    description->set_attempt(1);
    description->set_file_name("load");
  }

  std::string Submit(int64_t number, int64_t size) {
    v1::SubmitResultRequest request;
    Describe(number, request.mutable_description());
    request.set_body(pattern_.data(), size);
    request.set_crc32c(Crc32c(0, pattern_.data(), size));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::Result result;
    return Text(stub_->SubmitResult(&context, request, &result));
  }

  std::string Upload(int64_t number, int64_t size) {
    v1::OpenUploadRequest open;
    Describe(number, open.mutable_description());
    open.set_size(size);
    v1::OpenUploadResponse opened;
    grpc::ClientContext open_context;
    open_context.set_wait_for_ready(true);
    if (auto status = stub_->OpenUpload(&open_context, open, &opened); !status.ok()) {
      return Text(status);
    }
    grpc::ClientContext context;
    auto stream = stub_->Upload(&context);
    v1::UploadRequest start;
    start.mutable_start()->set_upload_id(opened.upload_id());
    start.mutable_start()->set_epoch(opened.epoch());
    stream->Write(start);
    return Pump(*stream, opened, size);
  }

  // Finish() waits until all responses are read.
  static grpc::Status ReadToEnd(
      grpc::ClientReaderWriter<v1::UploadRequest, v1::UploadResponse>& stream,
      v1::UploadResponse& response) {
    while (stream.Read(&response)) {
    }
    return stream.Finish();
  }

  std::string Pump(grpc::ClientReaderWriter<v1::UploadRequest, v1::UploadResponse>& stream,
                   const v1::OpenUploadResponse& opened, int64_t size) {
    v1::UploadRequest message;
    v1::UploadResponse response;
    int64_t written = 0;
    uint32_t whole = 0;
    for (int64_t offset = 0; offset < size;) {
      const size_t at = offset % pattern_.size();
      const int64_t n = std::min<int64_t>(
          {opened.chunk_max(), size - offset, static_cast<int64_t>(pattern_.size() - at)});
      auto* chunk = message.mutable_chunk();
      chunk->set_offset(offset);
      chunk->set_raw_size(n);
      chunk->set_crc32c(Crc32c(0, pattern_.data() + at, n));
      if (absl::GetFlag(FLAGS_text) && opened.zstd_accepted()) {
        chunk->set_encoding(v1::UploadRequest::ENCODING_ZSTD);
        CompressFrame({pattern_.data() + at, static_cast<size_t>(n)}, chunk->mutable_data());
      } else {
        chunk->set_data(pattern_.data() + at, n);
      }
      whole = Crc32c(whole, pattern_.data() + at, n);
      offset += n;
      while (offset - written > opened.window()) {
        if (!stream.Read(&response)) return Text(ReadToEnd(stream, response));
        written = response.ack().written();
      }
      if (!stream.Write(message)) return Text(ReadToEnd(stream, response));
    }
    message.mutable_finish()->set_size(size);
    message.mutable_finish()->set_crc32c(whole);
    stream.Write(message);
    stream.WritesDone();
    const grpc::Status status = ReadToEnd(stream, response);
    return status.ok() && !response.has_committed() ? "ended without COMMITTED" : Text(status);
  }

  const nlohmann::json& credential_;
  const std::string& pattern_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ResultService::Stub> stub_;
};

int Run() {
  std::ifstream file(absl::GetFlag(FLAGS_credential));
  const nlohmann::json credential = nlohmann::json::parse(file, nullptr, false);
  if (!credential.is_object()) {
    std::cerr << "grpc_load: --credential has to name a JSON file\n";
    return 2;
  }
  const int64_t size = absl::GetFlag(FLAGS_size);
  const auto make = absl::GetFlag(FLAGS_text) ? LogLines : Incompressible;
  const std::string pattern = make(std::min<int64_t>(size, kPattern));
  std::vector<std::unique_ptr<Sender>> senders;
  for (int i = 0; i < absl::GetFlag(FLAGS_senders); ++i) {
    senders.push_back(std::make_unique<Sender>(credential, pattern));
  }
  return Measure(absl::GetFlag(FLAGS_count), absl::GetFlag(FLAGS_senders),
                 [&](int sender, int64_t i) { return senders[sender]->Send(i, size); });
}

}  // namespace
}  // namespace muster::load

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Delivers results; prints how long it took.");
  absl::ParseCommandLine(argc, argv);
  return muster::load::Run();
}
