// The context of a build: a tar with a Dockerfile and the files that the image gets.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_BUILD_CONTEXT_H_
#define MUSTER_SERVICES_AGENT_DOCKER_BUILD_CONTEXT_H_

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/unique_fd.h"

struct archive;

namespace muster {

// The name of the Dockerfile in the context. The files are in another folder.
inline constexpr char kDockerfileName[] = "Dockerfile";

struct ImageRecipe {
  std::string base;    // NAME@sha256:DIGEST, or an id
  std::string folder;  // of the files in the image: an absolute path (TypeDocument::build_folder)
  std::map<std::string, std::string> labels;  // of printable ASCII without quotes
};

// Returns the Dockerfile: FROM, LABEL and COPY. Nothing in it is executed.
std::string DockerfileOf(const ImageRecipe& recipe);

// The files that an image gets.
struct BuildFiles {
  // They satisfy CheckFiles (files.h).
  google::protobuf::RepeatedPtrField<v1::Command::File> files;
  // Has the contents that are not part of the command, by their paths.
  std::string folder;
};

// Writes the tar as a stream. Equal files give equal bytes: owner and group are 0, the times are
// fixed, and the modes are 0644, or 0755 for folders and executable files. Not thread-safe.
class BuildContext {
 public:
  // `files` outlive the context.
  BuildContext(const ImageRecipe& recipe, const BuildFiles& files);
  ~BuildContext();

  // Fills the buffer with the next bytes; returns 0 at the end. RESOURCE_EXHAUSTED without memory,
  // or a failure of the disk.
  absl::StatusOr<size_t> Read(std::span<char> buffer);

 private:
  struct Free {
    void operator()(archive* a) const;
  };

  // Writes the next entry, or the next part of a file, to pending_.
  absl::Status WriteNext();
  absl::Status WriteHeader(const std::string& path, int64_t size, unsigned mode);
  // Returns the next part of the content.
  absl::StatusOr<std::string_view> NextPart();
  absl::Status Failure() const;

  const std::string dockerfile_;
  const BuildFiles& files_;
  int next_ = -1;       // the file to write; -1: the Dockerfile
  int64_t offset_ = 0;  // in its content
  bool header_written_ = false;
  bool ended_ = false;
  UniqueFd stored_;                         // the file, if its content is in the folder
  std::string part_;                        // of it
  std::string pending_;                     // bytes of the tar that were not read
  size_t read_ = 0;                         // of pending_
  std::unique_ptr<archive, Free> archive_;  // last: its destructor adds to pending_
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_BUILD_CONTEXT_H_
