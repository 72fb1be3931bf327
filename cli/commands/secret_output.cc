#include "cli/commands/secret_output.h"

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "services/common/base/secret_file.h"

namespace muster::cli {

absl::Status WriteSecretOutput(Console& console, const std::string& file,
                               std::string_view content) {
  if (file.empty() || file == "-") {
    console.out << content << (content.empty() || content.back() != '\n' ? "\n" : "");
    return absl::OkStatus();
  }
  return WithSubject(WriteFileAtomically(file, content, 0600), absl::StrCat("file ", file));
}

}  // namespace muster::cli
