#include "cli/commands/secret_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/output_file.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"

namespace muster::cli {

absl::Status CheckNewSecretOutput(const std::string& option, const std::string& file) {
  if (file.empty() || file == "-") return absl::OkStatus();
  if (const absl::Status checked = CheckOutputFile(file); !checked.ok()) {
    return Annotate(checked, option);
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored) &&
      std::filesystem::file_size(file, ignored) > 0) {
    return WithSubject(Annotate(errors::OutputExists(file), option), absl::StrCat("file ", file));
  }
  std::string folder = std::filesystem::path(file).parent_path().string();
  if (folder.empty()) folder = ".";
  std::string temporary = absl::StrCat(folder, "/.muster.XXXXXX");
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return WithSubject(ErrnoError(errno, "create a file in", folder), absl::StrCat("file ", file));
  }
  ::unlink(temporary.c_str());
  return absl::OkStatus();
}

absl::Status WriteSecretOutput(Console& console, const std::string& file,
                               std::string_view content) {
  if (file.empty() || file == "-") {
    console.out << content << (content.empty() || content.back() != '\n' ? "\n" : "");
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckOutputFile(file));
  return WithSubject(WriteFileAtomically(file, content, 0600), absl::StrCat("file ", file));
}

}  // namespace muster::cli
