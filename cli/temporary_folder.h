// A folder for the time of a command.
#ifndef MUSTER_CLI_TEMPORARY_FOLDER_H_
#define MUSTER_CLI_TEMPORARY_FOLDER_H_

#include <string>

namespace muster::cli {

// A new folder that only this user can access. It is removed with its content. Not thread-safe.
class TemporaryFolder {
 public:
  // Creates it in `parent`; empty: in TMPDIR, else /tmp.
  explicit TemporaryFolder(const std::string& parent = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Returns its absolute path; empty if it could not be created.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_TEMPORARY_FOLDER_H_
