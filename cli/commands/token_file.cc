#include "cli/commands/token_file.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/exit_code.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxToken = size_t{64} << 10;

// Returns true if a service answered, or could not be reached.
bool IsServiceError(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsInvalidArgument(status) ||
         absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsDeadlineExceeded(status);
}

}  // namespace

absl::StatusOr<JoinToken> ReadTokenFile(const std::string& file) {
  if (file == "-") {
    ASSIGN_OR_RETURN(std::string text, ReadStdinBounded(kMaxToken));
    return ParseJoinToken(Secret(std::move(text)).view());
  }
  auto text = ReadSecretFile(
      file, [](std::string_view content) { return ParseJoinToken(content).status(); });
  if (!text.ok()) return WithSubject(text.status(), absl::StrCat("token file ", file));
  auto token = ParseJoinToken(Secret(*std::move(text)).view());
  if (!token.ok()) return WithSubject(token.status(), absl::StrCat("token file ", file));
  return token;
}

void AddLinkOption(CLI::App& command, std::string& link) {
  command
      .add_option(
          "--link", link,
          "How this machine connects: auto (directly; through a tunnel where a proxy prevents "
          "that), direct, or wss://HOST:PORT (only through the tunnel of this gateway)")
      ->type_name("auto|direct|wss://HOST:PORT");
}

absl::Status MarkJoinError(const absl::Status& failure, const std::string& subject) {
  return IsServiceError(failure) ? FromService(failure, subject) : failure;
}

}  // namespace muster::cli
