#include "cli/rpc/content_client.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/exit_code.h"
#include "cli/rpc/jobs_channel.h"
#include "cli/rpc/unary_call.h"
#include "muster/v1/contents.grpc.pb.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr int64_t kPart = int64_t{512} << 10;
constexpr size_t kFoundAtOnce = 1'000;

absl::Status Changed(const LocalContent& content) {
  return UsageError(absl::StrCat(content.source, ": has changed since it was read"),
                    "Run the command again when the file does not change any more.");
}

// Returns the bytes of a part. A usage error if there are fewer.
absl::StatusOr<std::string> ReadPart(std::ifstream& in, const LocalContent& content,
                                     int64_t offset) {
  std::string part(static_cast<size_t>(std::min(kPart, content.size - offset)), '\0');
  in.clear();
  in.seekg(offset);
  in.read(part.data(), static_cast<std::streamsize>(part.size()));
  if (!in) return Changed(content);
  return part;
}

}  // namespace

struct ContentClient::Stub {
  std::unique_ptr<v1::ContentService::Stub> contents;
  std::string service;  // for messages
};

ContentClient::ContentClient(const OperatorContext& context) : stub_(std::make_unique<Stub>()) {
  stub_->contents = v1::ContentService::NewStub(MakeJobsChannel(context));
  stub_->service = absl::StrCat("the jobs service at ", absl::StrJoin(context.jobs_targets, ", "));
}

ContentClient::~ContentClient() = default;

absl::StatusOr<std::vector<LocalContent>> ContentClient::FindMissing(
    const std::vector<LocalContent>& contents) {
  std::vector<LocalContent> missing;
  std::set<std::string> seen;
  for (size_t begin = 0; begin < contents.size(); begin += kFoundAtOnce) {
    const size_t end = std::min(begin + kFoundAtOnce, contents.size());
    v1::FindContentsRequest request;
    for (size_t i = begin; i < end; ++i) request.add_sha256(contents[i].sha256);
    ASSIGN_OR_RETURN(const auto found,
                     CallUnary(*stub_->contents, &v1::ContentService::Stub::FindContents, request,
                               absl::StrCat("the files at ", stub_->service)));
    const std::set<std::string> absent(found.missing().begin(), found.missing().end());
    for (size_t i = begin; i < end; ++i) {
      if (!absent.contains(contents[i].sha256) || !seen.insert(contents[i].sha256).second) continue;
      missing.push_back(contents[i]);
    }
  }
  return missing;
}

absl::Status ContentClient::Upload(const LocalContent& content, const Progress& progress) {
  std::ifstream in(content.source, std::ios::binary);
  v1::UploadContentRequest request;
  request.set_sha256(content.sha256);
  request.set_size(content.size);
  // A small content needs one call. The service knows the offset of a large one.
  bool begun = content.size <= kPart;
  for (;;) {
    if (begun) {
      ASSIGN_OR_RETURN(*request.mutable_data(), ReadPart(in, content, request.offset()));
    }
    begun = true;
    request.set_crc32c(Crc32c(request.data()));
    const auto response = CallUnary(*stub_->contents, &v1::ContentService::Stub::UploadContent,
                                    request, absl::StrCat(content.source, " at ", stub_->service));
    if (ReasonOf(response.status()) == "DIGEST_MISMATCH") return Changed(content);
    RETURN_IF_ERROR(response.status());
    progress(response->offset());
    if (response->stored()) return absl::OkStatus();
    request.set_offset(response->offset());
  }
}

}  // namespace muster::cli
