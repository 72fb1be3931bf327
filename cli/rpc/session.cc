#include "cli/rpc/session.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/supervisor/home.h"
#include "services/common/base/status_macros.h"
#include "services/common/identity/context.h"

namespace muster::cli {

absl::StatusOr<std::string> ContextFile(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* file = std::getenv("MUSTER_CONTEXT"); file != nullptr && *file != '\0') {
    return std::string(file);
  }
  ASSIGN_OR_RETURN(const auto home, supervisor::HomeFromEnvironment());
  return home.ContextFile();
}

absl::StatusOr<OperatorContext> ReadCheckedContext(const std::string& context_option) {
  ASSIGN_OR_RETURN(const std::string file, ContextFile(context_option));
  const std::string subject = absl::StrCat("context file ", file);
  absl::StatusOr<OperatorContext> context = ReadContext(file);
  if (!context.ok()) return WithSubject(context.status(), subject);
  const absl::Status checked = CheckContext(*context, absl::Now());
  if (!checked.ok()) return WithSubject(checked, subject);
  return context;
}

absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& context_option) {
  ASSIGN_OR_RETURN(const OperatorContext context, ReadCheckedContext(context_option));
  return std::make_unique<Client>(context);
}

}  // namespace muster::cli
