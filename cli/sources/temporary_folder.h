// A folder for files that a command needs for a while.
#ifndef MUSTER_CLI_SOURCES_TEMPORARY_FOLDER_H_
#define MUSTER_CLI_SOURCES_TEMPORARY_FOLDER_H_

#include <string>

namespace muster::cli {

// A folder in $TMPDIR, or /tmp, that only this user reads, and that is removed with its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }  // empty: it could not be created

 private:
  std::string path_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_SOURCES_TEMPORARY_FOLDER_H_
