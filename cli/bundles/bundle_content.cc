#include "cli/bundles/bundle_content.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/signed_command.h"
#include "services/common/templates/canonical_document.h"
#include "services/common/templates/documents.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

// Returns the media type that the manifest states, or that of its format.
std::string MediaTypeOf(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto type = json.is_object() ? json.find("mediaType") : json.end();
  if (json.is_object() && type != json.end() && type->is_string()) return type->get<std::string>();
  return json.is_object() && json.contains("manifests")
             ? "application/vnd.oci.image.index.v1+json"
             : "application/vnd.oci.image.manifest.v1+json";
}

std::string BlobPath(const std::string& folder, const std::string& sha256) {
  return absl::StrCat(folder, "/", kBundleBlobs, sha256);
}

class ContentReader {
 public:
  ContentReader(const std::string& folder, const std::vector<BundleMember>& members,
                const std::string& file)
      : folder_(folder), file_(file), members_(members) {
    for (const BundleMember& member : members) {
      if (member.path.starts_with(kBundleBlobs)) blobs_.emplace(member.sha256, member.size);
    }
  }

  absl::StatusOr<BundleContent> Read() {
    for (const BundleMember& member : members_) {
      if (const auto version = DocumentOf(member.path, kTypeFolder); !version.empty()) {
        RETURN_IF_ERROR(AddType(member.path, version));
      } else if (const auto own = DocumentOf(member.path, kTemplateFolder); !own.empty()) {
        RETURN_IF_ERROR(AddTemplate(member.path, own));
      }
    }
    if (content_.types.empty()) return Unusable("it has no document");
    for (const BundleDocument& own : content_.templates) {
      if (types_.contains(own.type)) continue;
      return Unusable(
          absl::StrCat("the type ", own.type, " of the template ", own.version, " is not in it"));
    }
    for (const auto& [sha256, size] : blobs_) {
      if (used_.contains(sha256)) continue;
      return Unusable(absl::StrCat(kBundleBlobs, sha256, " belongs to none of its images"));
    }
    return std::move(content_);
  }

 private:
  absl::StatusOr<std::string> ReadDocument(const std::string& path) const {
    ASSIGN_OR_RETURN(std::string text,
                     ReadFileBounded(absl::StrCat(folder_, "/", path), kMaxDocument));
    const auto canonical = CanonicalDocument(text);
    if (canonical.ok() && *canonical == text) return text;
    return Unusable(absl::StrCat(path, " is not a document as the jobs service stores it"));
  }

  absl::Status AddType(const std::string& path, std::string_view version) {
    ASSIGN_OR_RETURN(std::string text, ReadDocument(path));
    const auto type = ReadType(text);
    if (!type.ok()) return Invalid(path, type.status());
    RETURN_IF_ERROR(CheckVersion(path, version, type->name, type->version));
    RETURN_IF_ERROR(AddImage(path, type->image));
    types_.emplace(version);
    content_.types.push_back({std::string(version), std::move(text), type->image, ""});
    return absl::OkStatus();
  }

  absl::Status AddTemplate(const std::string& path, std::string_view version) {
    ASSIGN_OR_RETURN(std::string text, ReadDocument(path));
    const auto own = ReadTemplate(text);
    if (!own.ok()) return Invalid(path, own.status());
    RETURN_IF_ERROR(CheckVersion(path, version, own->name, own->version));
    if (!own->image.empty()) RETURN_IF_ERROR(AddImage(path, own->image));
    content_.templates.push_back({std::string(version), std::move(text), own->image, own->type});
    return absl::OkStatus();
  }

  absl::Status CheckVersion(const std::string& path, std::string_view expected,
                            const std::string& name, const std::string& version) const {
    if (absl::StrCat(name, "@", version) == ToAbsl(expected)) return absl::OkStatus();
    return Unusable(absl::StrCat(path, " is the document of ", name, "@", version));
  }

  absl::Status AddImage(const std::string& path, const std::string& name) {
    if (content_.images.contains(name)) return absl::OkStatus();
    const auto digest = Sha256OfDigest(DigestOf(name));
    if (!digest) {
      return Unusable(absl::StrCat(path, " names the image ", name, " without a registry"));
    }
    auto read = ReadImage(*digest, [&](const std::string& sha256) { return Manifest(sha256); });
    if (ReasonOf(read.status()) == "IMAGE_COPY_FAILED") return Invalid(path, read.status());
    ASSIGN_OR_RETURN(BundleImage image, std::move(read));
    for (const auto& [sha256, size] : image.blobs) {
      const auto found = blobs_.find(sha256);
      if (found == blobs_.end() || found->second != size) {
        return Unusable(absl::StrCat("the blob ", sha256, " of the image ", name,
                                     " is missing, or has another size"));
      }
      used_.insert(sha256);
    }
    content_.images.emplace(name, std::move(image));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Manifest(const std::string& sha256) {
    const auto found = blobs_.find(sha256);
    if (found == blobs_.end() || found->second > static_cast<int64_t>(kMaxManifest)) {
      return Unusable(absl::StrCat("the manifest ", sha256, " is missing, or too large"));
    }
    used_.insert(sha256);
    return ReadFileBounded(BlobPath(folder_, sha256), kMaxManifest);
  }

  absl::Status Invalid(const std::string& path, const absl::Status& status) const {
    return Unusable(absl::StrCat(path, ": ", status.message()));
  }
  absl::Status Unusable(std::string_view why) const { return errors::BundleUnusable(file_, why); }

  const std::string& folder_;
  const std::string& file_;
  const std::vector<BundleMember>& members_;
  std::map<std::string, int64_t> blobs_;
  std::set<std::string> used_;
  std::set<std::string, std::less<>> types_;
  BundleContent content_;
};

}  // namespace

int64_t BundleImage::size() const {
  int64_t sum = 0;
  for (const auto& [sha256, bytes] : blobs) sum += bytes;
  return sum;
}

absl::StatusOr<BundleContent> ReadBundleContent(const std::string& folder,
                                                const std::vector<BundleMember>& members,
                                                const std::string& file) {
  return ContentReader(folder, members, file).Read();
}

absl::StatusOr<BundleImage> ReadImage(const std::string& sha256, const ReadManifest& read) {
  BundleImage image;
  const auto add = [&](const std::string& of) -> absl::StatusOr<ImageManifest> {
    ASSIGN_OR_RETURN(const std::string text, read(of));
    auto manifest = ParseImageManifest(text);
    if (!manifest) {
      return errors::ImageCopyFailed(
          absl::StrCat("sha256:", of),
          "its manifest is neither one of OCI nor version 2, schema 2 of Docker",
          "Push the image again with a newer program, and store a version with the new digest.");
    }
    for (const BlobReference& blob : manifest->blobs) image.blobs[blob.sha256] = blob.size;
    return *std::move(manifest);
  };
  ASSIGN_OR_RETURN(const ImageManifest top, add(sha256));
  for (const BlobReference& platform : top.manifests) {
    if (!image.manifests.insert(platform.sha256).second) continue;
    RETURN_IF_ERROR(add(platform.sha256).status());
  }
  return image;
}

absl::Status WriteLayout(const std::string& folder,
                         const std::map<std::string, BundleImage>& images) {
  Json manifests = Json::array();
  for (const auto& [name, image] : images) {
    const std::string sha256 = Sha256OfDigest(DigestOf(name)).value_or("");
    ASSIGN_OR_RETURN(const std::string text,
                     ReadFileBounded(BlobPath(folder, sha256), kMaxManifest));
    manifests.push_back({{"mediaType", MediaTypeOf(text)},
                         {"digest", absl::StrCat("sha256:", sha256)},
                         {"size", text.size()},
                         {"annotations", {{"org.opencontainers.image.ref.name", name}}}});
  }
  const Json index = {{"schemaVersion", 2}, {"manifests", std::move(manifests)}};
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", kLayoutIndexPath), index.dump()));
  return WriteFileAtomically(absl::StrCat(folder, "/", kLayoutPath),
                             R"({"imageLayoutVersion":"1.0.0"})");
}

}  // namespace muster::cli
