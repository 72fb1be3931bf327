#include "cli/rpc/session.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/supervisor/home.h"
#include "services/common/identity/context.h"

namespace muster::cli {

absl::StatusOr<std::string> ContextFile(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* file = std::getenv("MUSTER_CONTEXT"); file != nullptr && *file != '\0') {
    return std::string(file);
  }
  const auto home = supervisor::HomeFromEnvironment();
  if (!home.ok()) return home.status();
  return home->ContextFile();
}

absl::StatusOr<OperatorContext> ReadCheckedContext(const std::string& context_option) {
  const absl::StatusOr<std::string> file = ContextFile(context_option);
  if (!file.ok()) return file.status();
  const std::string subject = absl::StrCat("context file ", *file);
  absl::StatusOr<OperatorContext> context = ReadContext(*file);
  if (!context.ok()) return About(context.status(), subject);
  const absl::Status checked = CheckContext(*context, absl::Now());
  if (!checked.ok()) return About(checked, subject);
  return context;
}

absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& context_option) {
  const absl::StatusOr<OperatorContext> context = ReadCheckedContext(context_option);
  if (!context.ok()) return context.status();
  return std::make_unique<Client>(*context);
}

}  // namespace muster::cli
