// Reads the files of a deployment whose content is not part of its command.
#ifndef MUSTER_SERVICES_AGENT_JOBS_CONTENT_FETCHER_H_
#define MUSTER_SERVICES_AGENT_JOBS_CONTENT_FETCHER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

// Where a node reads contents: the jobs service, through the relays. Thread-safe.
class ContentSource {
 public:
  virtual ~ContentSource() = default;

  // Returns the bytes of a content from `offset` on, at most 512 KiB, whose checksum was verified;
  // none at its end. Blocks for at most half a minute, and soon ends with CANCELLED once `stopped`
  // returns true. The errors of ContentService.ReadContent (contents.proto), UNREACHABLE,
  // CRC_MISMATCH.
  virtual absl::StatusOr<std::string> Read(const std::string& deployment, const std::string& sha256,
                                           int64_t offset, absl::FunctionRef<bool()> stopped) = 0;
};

// Not thread-safe.
class ContentFetcher {
 public:
  struct Options {
    ContentSource& source;  // outlives the fetcher
    std::string deployment;
    std::function<bool()> stopped;             // whether the command must not start any more
    std::function<void(absl::Duration)> wait;  // blocks for this time, or until it is stopped
    // How long reads of a file may fail one after the other.
    absl::Duration patience = absl::Minutes(5);
  };

  explicit ContentFetcher(Options options) : options_(std::move(options)) {}

  // Writes the content of the file to `path`, which must not exist: any user may read it, or also
  // execute it. A failed read is repeated at the same offset. The disk has space for the whole file
  // before the first read. UNAVAILABLE (CONTENT_UNREACHABLE), DATA_LOSS (CONTENT_DAMAGED: other
  // bytes than those that the operator signed), RESOURCE_EXHAUSTED (DISK_FULL) or another failure
  // of the disk, CANCELLED if it was stopped. The file may then exist.
  absl::Status Fetch(const std::string& path, const v1::Command::File& file) const;
  // As a FetchFile (deployment_files.h).
  absl::Status operator()(const std::string& path, const v1::Command::File& file) const {
    return Fetch(path, file);
  }

 private:
  absl::StatusOr<std::string> ReadPart(const v1::Command::File& file, int64_t offset) const;

  const Options options_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_CONTENT_FETCHER_H_
