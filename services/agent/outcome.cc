#include "services/agent/outcome.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/agent/agent_config.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

// Returns `text` without control characters. Further lines are indented, so that text of another
// machine never looks like the subject or the next step.
std::string PrintableLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length > 0) {
      out += text.substr(0, length);
    } else {
      out += text[0] == '\n' ? "\n       " : text[0] == '\t' ? " " : "?";
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

// Prints the subject and the next step, each with a line. Omits what is empty.
void PrintContext(const std::string& subject, const std::string& next_step) {
  if (!subject.empty()) std::cerr << "   on: " << PrintableLines(subject) << "\n";
  if (!next_step.empty()) std::cerr << " next: " << PrintableLines(next_step) << "\n";
}

}  // namespace

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
    std::cerr << (delivered ? "error result delivered: " : "error: ")
              << PrintableLines(status.message);
    if (!status.reason.empty()) std::cerr << " (" << PrintableLines(status.reason) << ")";
    std::cerr << "\n";
    PrintContext(subject, status.next_step);
  }
  return static_cast<int>(status.code);
}

void PrintWait(const std::string& message, const std::string& reason, const std::string& subject,
               const std::string& next_step) {
  std::cerr << "waiting: " << PrintableLines(message);
  if (!reason.empty()) std::cerr << " (" << PrintableLines(reason) << ")";
  std::cerr << "\n";
  PrintContext(subject, next_step);
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
