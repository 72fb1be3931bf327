// Reads any bytes as a done file. The result, if there is one, is in the results folder.
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#include "services/client/done_file.h"

namespace {

// A results folder with one file, for the life of the process.
class ResultsFolder {
 public:
  ResultsFolder() {
    const char* parent = std::getenv("TEST_TMPDIR");
    path_ = std::string(parent == nullptr ? "/tmp" : parent) + "/done_file_fuzz.XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
    std::ofstream(path_ + "/file") << "result";
  }
  ~ResultsFolder() {
    for (const char* name : {"/file", "/done"}) unlink((path_ + name).c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ResultsFolder folder;
  std::ofstream(folder.path() + "/done", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto result = muster::client::ResultOfDoneFile(folder.path());
  if (result.ok() && !result->starts_with(folder.path() + "/")) std::abort();
  return 0;
}
