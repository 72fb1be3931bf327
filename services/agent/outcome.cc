#include "services/agent/outcome.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/agent/agent_config.h"

namespace muster {

int PrintOutcome(const client::Delivery& delivery, const std::string& subject) {
  const client::Status& status = delivery.status;
  if (status.ok()) {
    std::cerr << "committed";
    if (!delivery.receipt.sha256.empty()) {
      std::cerr << ": " << delivery.receipt.size << " bytes, SHA-256 " << delivery.receipt.sha256;
    }
    std::cerr << "\n";
  } else {
    const bool delivered = status.code == client::Code::kErrorDelivered;
    std::cerr << (delivered ? "error result delivered: " : "error: ") << status.message;
    if (!status.reason.empty()) std::cerr << " (" << status.reason << ")";
    std::cerr << "\n   on: " << subject << "\n";
    if (!status.next_step.empty()) std::cerr << " next: " << status.next_step << "\n";
  }
  return static_cast<int>(status.code);
}

void PrintWait(const std::string& message, const std::string& reason, const std::string& subject,
               const std::string& next_step) {
  std::cerr << "waiting: " << message;
  if (!reason.empty()) std::cerr << " (" << reason << ")";
  std::cerr << "\n";
  if (!subject.empty()) std::cerr << "   on: " << subject << "\n";
  if (!next_step.empty()) std::cerr << " next: " << next_step << "\n";
}

std::string ConfigSubject(const std::string& path, const client::EnvironmentReader& environment) {
  const std::string names = absl::StrJoin(OverridingVariables(environment), ", ");
  if (path.empty()) {
    return absl::StrCat("the environment", names.empty() ? "" : absl::StrCat(" (", names, ")"),
                        "; --config names no file");
  }
  return absl::StrCat("configuration ", path, names.empty() ? "" : ", overridden by the variables ",
                      names);
}

}  // namespace muster
