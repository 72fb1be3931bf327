// A folder for one test, removed at its end.
#ifndef MUSTER_CLI_SUPERVISOR_TEST_FOLDER_H_
#define MUSTER_CLI_SUPERVISOR_TEST_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::supervisor {

class TestFolder {
 public:
  TestFolder() {
    // Does not use TEST_TMPDIR: the path of a socket may have at most 107 characters.
    std::string name = "/tmp/muster-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_TEST_FOLDER_H_
