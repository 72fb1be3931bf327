#include "services/jobs/content_service.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/contents.h"
#include "services/common/identity/caller_uri.h"

namespace muster {
namespace {

constexpr int kMaxFound = 1'000;
constexpr size_t kDigestSize = 32;

absl::Status CheckDigest(const std::string& sha256) {
  if (sha256.size() == kDigestSize) return absl::OkStatus();
  return errors::InvalidContent(absl::StrCat("a SHA-256 of ", sha256.size(), " bytes"));
}

}  // namespace

grpc::ServerUnaryReactor* ContentService::FindContents(grpc::CallbackServerContext* context,
                                                       const v1::FindContentsRequest* request,
                                                       v1::FindContentsResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ContentService/FindContents", {*request, response},
                [=, this](Call& call) { return Find(call, *request, response); });
}

absl::Status ContentService::Find(Call& call, const v1::FindContentsRequest& request,
                                  v1::FindContentsResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  if (request.sha256().empty() || request.sha256_size() > kMaxFound) {
    return errors::InvalidContent(
        absl::StrCat(request.sha256_size(), " contents in one call, not 1 to ", kMaxFound));
  }
  for (const std::string& sha256 : request.sha256()) RETURN_IF_ERROR(CheckDigest(sha256));
  ASSIGN_OR_RETURN(auto missing,
                   store_.FindMissing({request.sha256().begin(), request.sha256().end()}));
  for (std::string& sha256 : missing) response->add_missing(std::move(sha256));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ContentService::UploadContent(grpc::CallbackServerContext* context,
                                                        const v1::UploadContentRequest* request,
                                                        v1::UploadContentResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ContentService/UploadContent", {*request, response},
                [=, this](Call& call) { return Upload(call, *request, response); });
}

absl::Status ContentService::Upload(Call& call, const v1::UploadContentRequest& request,
                                    v1::UploadContentResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Fleet()));
  RETURN_IF_ERROR(CheckDigest(request.sha256()));
  ASSIGN_OR_RETURN(
      const auto progress,
      store_.Upload({.content = {request.sha256(), request.size(), UriOf(call.caller())},
                     .offset = request.offset(),
                     .crc32c = request.crc32c(),
                     .data = request.data()}));
  response->set_offset(progress.offset);
  response->set_stored(progress.stored);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* ContentService::ReadContent(grpc::CallbackServerContext* context,
                                                      const v1::ReadContentRequest* request,
                                                      v1::ReadContentResponse* response) {
  return Answer(runtime_, context, "/muster.v1.ContentService/ReadContent", {*request, response},
                [=, this](Call& call) { return Read(call, *request, response); });
}

absl::Status ContentService::Read(Call& call, const v1::ReadContentRequest& request,
                                  v1::ReadContentResponse* response) {
  RETURN_IF_ERROR(call.Authorize(Resource::Own()));
  RETURN_IF_ERROR(CheckDigest(request.sha256()));
  if (request.max_size() < 0) {
    return errors::InvalidContent(absl::StrCat("a max_size of ", request.max_size()));
  }
  const size_t limit =
      request.max_size() == 0 ? kMaxContentPart : static_cast<size_t>(request.max_size());
  // Authorize admits only nodes.
  const auto& node = std::get<NodeIdentity>(call.caller().identity.name).name;
  auto read = store_.Read(request.deployment(), node, request.sha256(), request.offset(), limit);
  if (absl::IsNotFound(read.status())) {
    read = workspaces_.Read(request.deployment(), node, request.sha256(), request.offset(), limit);
  }
  ASSIGN_OR_RETURN(auto bytes, std::move(read));
  response->set_size(bytes.size);
  response->set_crc32c(Crc32c(bytes.data));
  response->set_data(std::move(bytes.data));
  return absl::OkStatus();
}

}  // namespace muster
