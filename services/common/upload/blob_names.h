// The names of the blobs of a run. All have one prefix, so that deleting a run is one call.
#ifndef MUSTER_SERVICES_COMMON_UPLOAD_BLOB_NAMES_H_
#define MUSTER_SERVICES_COMMON_UPLOAD_BLOB_NAMES_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace muster {

// The prefix of the blobs of all runs.
inline constexpr char kRunBlobs[] = "runs/";

inline std::string RunBlobPrefix(const std::string& run) {
  return absl::StrCat(kRunBlobs, run, "/");
}

// The bytes of a result, by its upload; fanned out, since a run may have 100,000.
inline std::string ResultBlobName(const std::string& run, const std::string& upload) {
  return absl::StrCat(RunBlobPrefix(run), "results/", upload.substr(0, 2), "/", upload);
}

inline std::string PartialBlobName(const std::string& run, const std::string& upload) {
  return absl::StrCat(RunBlobPrefix(run), "partial/", upload);
}

inline std::string ArchiveBlobPrefix(const std::string& run) {
  return absl::StrCat(RunBlobPrefix(run), "archive/");
}

inline std::string ArchiveBlobName(const std::string& run, const std::string& build) {
  return absl::StrCat(ArchiveBlobPrefix(run), build);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_UPLOAD_BLOB_NAMES_H_
