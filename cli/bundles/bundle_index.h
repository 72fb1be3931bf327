// The index of a bundle: the list of its members.
//
// A bundle is a tar without compression. Its first member is the index; the others follow in the
// order of the index, by path:
//
//   bundle.json                          the index
//   blobs/sha256/DIGEST                  manifests, configurations and layers of images
//   documents/templates/NAME@VERSION.json
//   documents/types/NAME@VERSION.json
//   index.json, oci-layout               make the blobs an OCI image layout, for other tools
#ifndef MUSTER_CLI_BUNDLES_BUNDLE_INDEX_H_
#define MUSTER_CLI_BUNDLES_BUNDLE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster::cli {

inline constexpr char kIndexPath[] = "bundle.json";
inline constexpr char kBundleBlobs[] = "blobs/sha256/";
inline constexpr char kTypeFolder[] = "documents/types/";
inline constexpr char kTemplateFolder[] = "documents/templates/";
inline constexpr char kLayoutIndexPath[] = "index.json";
inline constexpr char kLayoutPath[] = "oci-layout";

inline constexpr size_t kMaxMembers = 50'000;
inline constexpr size_t kMaxIndex = size_t{16} << 20;
// Bytes of all members.
inline constexpr int64_t kMaxBundle = int64_t{1} << 40;

struct BundleMember {
  std::string path;
  int64_t size = 0;    // bytes
  std::string sha256;  // 64 lower-case hex digits
};

// Returns the text of the index of these members, sorted by path.
std::string BundleIndexText(std::vector<BundleMember> members);

// Reads an index. The members are those of the format above, each once, sorted by path, and not
// more and larger than the limits. A blob has the digest of its path. INVALID_ARGUMENT
// (BUNDLE_UNUSABLE names `file`).
absl::StatusOr<std::vector<BundleMember>> ParseBundleIndex(std::string_view text,
                                                           const std::string& file);

// Returns whether `text` is NAME@VERSION of a document, with a whole version: it is safe in a path.
bool IsDocumentVersion(std::string_view text);

// Returns "NAME@VERSION" of the path of a document in a folder; empty for another path.
std::string_view DocumentOf(std::string_view path, std::string_view folder);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BUNDLES_BUNDLE_INDEX_H_
