#include "services/agent/docker/image_builder.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/agent/docker/engine_json.h"
#include "services/agent/docker/engine_transfer.h"
#include "services/agent/docker/progress_lines.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/docker.h"
#include "services/common/rpc/https_handle.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kCallLimit = absl::Seconds(30);
constexpr size_t kMaxAnswer = size_t{4} << 20;
// A build makes two images, of which one is the parent of the other.
constexpr int kRemovals = 4;

// Returns whether the error is not one of the build or the registry.
bool IsOfDaemon(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "DOCKER_UNREACHABLE" || reason == "DOCKER_TOO_OLD";
}

}  // namespace

absl::Status ImageBuilder::Build(const ImageRecipe& recipe, const BuildFiles& files,
                                 const BuiltImageName& name, const Call& call) {
  BuildContext context(recipe, files);
  ASSIGN_OR_RETURN(
      std::string path,
      engine_.PathOf(absl::StrCat(
          "/build?version=1&rm=1&forcerm=1&networkmode=none&dockerfile=", kDockerfileName,
          "&t=", UrlEscaped(absl::StrCat(name.repository, ":", name.tag())))));
  bool has_image = false;
  ProgressLines lines([&](const Json& object) {
    has_image = has_image || !Member<std::string>(ObjectIn(object, "aux"), "ID", "").empty();
    if (const auto text = Member<std::string>(object, "stream", ""); !text.empty()) {
      call.output(text);
    }
  });
  EngineRequest request = {"POST", std::move(path), ""};
  request.tar = [&](std::span<char> buffer) { return context.Read(buffer); };
  EngineTransfer transfer(engine_.socket(), std::move(request), [&](std::string_view piece) {
    lines.Feed(piece);
    return absl::OkStatus();
  });
  const absl::Status status = transfer.Perform(call.limit, call.stopped);
  if (!lines.failure().empty()) return errors::BuildFailed(lines.failure());
  if (IsOfDaemon(status)) return status;
  if (!status.ok()) return errors::BuildFailed(ToStd(status.message()));
  return has_image ? absl::OkStatus() : errors::BuildFailed("Docker reported no image");
}

absl::StatusOr<std::string> ImageBuilder::Push(const BuiltImageName& name, const Call& call) {
  ASSIGN_OR_RETURN(std::string path, engine_.PathOf(absl::StrCat("/images/", name.repository,
                                                                 "/push?tag=", name.tag())));
  ASSIGN_OR_RETURN(std::string header, engine_.AuthHeader(name.repository));
  std::string digest;
  ProgressLines lines([&](const Json& object) {
    if (auto found = Member<std::string>(ObjectIn(object, "aux"), "Digest", ""); !found.empty()) {
      digest = std::move(found);
    }
    const auto line = Member<std::string>(object, "status", "");
    if (line.empty() || !ObjectIn(object, "progressDetail").empty()) return;
    const auto id = Member<std::string>(object, "id", "");
    call.output(absl::StrCat(id, id.empty() ? "" : ": ", line, "\n"));
  });
  EngineTransfer transfer(engine_.socket(), {"POST", std::move(path), "", {std::move(header)}},
                          [&](std::string_view piece) {
                            lines.Feed(piece);
                            return absl::OkStatus();
                          });
  const absl::Status status = transfer.Perform(call.limit, call.stopped);
  if (!lines.failure().empty()) {
    return errors::ImagePushFailed(name.repository, lines.failure());
  }
  if (IsOfDaemon(status)) return status;
  if (!status.ok()) return errors::ImagePushFailed(name.repository, ToStd(status.message()));
  if (digest.empty()) {
    return errors::ImagePushFailed(name.repository, "Docker reported no digest");
  }
  ASSIGN_OR_RETURN(const std::string found, ConfirmedDigest(name, call));
  if (found != digest) return errors::ImageDigestDiffers(name.repository, digest, found);
  return digest;
}

// Docker computes the digest itself. Asks the registry what the nodes will find there.
absl::StatusOr<std::string> ImageBuilder::ConfirmedDigest(const BuiltImageName& name,
                                                          const Call& call) {
  ASSIGN_OR_RETURN(std::string path, engine_.PathOf(absl::StrCat("/distribution/", name.repository,
                                                                 ":", name.tag(), "/json")));
  ASSIGN_OR_RETURN(std::string header, engine_.AuthHeader(name.repository));
  std::string answer;
  EngineTransfer transfer(
      engine_.socket(), {"GET", std::move(path), "", {std::move(header)}},
      [&](std::string_view piece) {
        answer.append(piece.substr(0, kMaxAnswer - std::min(kMaxAnswer, answer.size())));
        return absl::OkStatus();
      });
  const absl::Status status = transfer.Perform(call.limit, call.stopped);
  if (IsOfDaemon(status)) return status;
  if (!status.ok()) return errors::ImagePushFailed(name.repository, ToStd(status.message()));
  const Json json = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
  auto digest = Member<std::string>(ObjectIn(json, "Descriptor"), "digest", "");
  if (digest.empty()) {
    return errors::DockerAnswerInvalid("GET /distribution", "it has no digest");
  }
  return digest;
}

absl::StatusOr<std::vector<ImageBuilder::Leftover>> ImageBuilder::ListLeftovers(
    std::string_view label, const std::string& value) {
  const Json filters = {{"label", {absl::StrCat(ToAbsl(label), "=", value)}}};
  ASSIGN_OR_RETURN(std::string path, engine_.PathOf(absl::StrCat("/images/json?all=true&filters=",
                                                                 UrlEscaped(filters.dump()))));
  long code = 0;
  ASSIGN_OR_RETURN(const std::string answer,
                   CallEngine(engine_.socket(), {"GET", std::move(path), ""}, kCallLimit, &code));
  const Json images = Json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!images.is_array()) return errors::DockerAnswerInvalid("GET /images/json", "it is no list");
  std::vector<Leftover> left;
  for (const Json& image : images) {
    const auto labels = LabelsIn(image);
    const auto job = labels.find(std::string(kBuildJobLabel));
    if (job == labels.end()) continue;
    std::vector<std::string> tags = TextsIn(image, "RepoTags");
    std::vector<std::string> digests = TextsIn(image, "RepoDigests");
    for (auto* names : {&tags, &digests}) {
      std::erase_if(*names, [](const std::string& name) { return name.starts_with("<none>"); });
    }
    if (tags.empty() && digests.empty()) {
      left.push_back({job->second, Member<std::string>(image, "Id", "")});
    }
    // An image that the node has pulled to run it has other names.
    for (const std::string& tag : tags) {
      if (tag.ends_with(":" + BuiltImageName{"", job->second}.tag())) {
        left.push_back({job->second, tag});
      }
    }
  }
  return left;
}

// Never removes the parents with an image: the base may have no name.
absl::Status ImageBuilder::Remove(const std::string& job) {
  absl::Status failure;
  for (int i = 0; i < kRemovals; ++i) {
    ASSIGN_OR_RETURN(const auto left, ListLeftovers(kBuildJobLabel, job));
    if (left.empty()) return absl::OkStatus();
    for (const Leftover& image : left) {
      ASSIGN_OR_RETURN(std::string path,
                       engine_.PathOf(absl::StrCat("/images/", image.name, "?noprune=1")));
      long code = 0;
      const auto removed =
          CallEngine(engine_.socket(), {"DELETE", std::move(path), ""}, kCallLimit, &code);
      if (!removed.ok() && code != 404) failure = removed.status();
    }
  }
  ASSIGN_OR_RETURN(const auto left, ListLeftovers(kBuildJobLabel, job));
  return left.empty() ? absl::OkStatus() : failure;
}

absl::StatusOr<std::set<std::string>> ImageBuilder::ListJobs(const std::string& builder) {
  ASSIGN_OR_RETURN(const auto left, ListLeftovers(kBuilderLabel, builder));
  std::set<std::string> jobs;
  for (const Leftover& image : left) jobs.insert(image.job);
  return jobs;
}

}  // namespace muster
