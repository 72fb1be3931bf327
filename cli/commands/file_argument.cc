#include "cli/commands/file_argument.h"

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/base/secret_file.h"

namespace muster::cli {

absl::StatusOr<std::string> ReadFileArgument(const std::string& file, size_t max_bytes) {
  return file == "-" ? ReadStdinBounded(max_bytes) : ReadFileBounded(file, max_bytes);
}

absl::Status WithFile(const absl::Status& status, const std::string& file) {
  const std::string subject = SubjectOf(status);
  if (subject.empty() || file == "-") return status;
  return FromService(status, absl::StrCat(Printable(file), ", ", subject));
}

}  // namespace muster::cli
