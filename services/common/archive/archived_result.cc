#include "services/common/archive/archived_result.h"

namespace muster {

std::string_view OutcomeName(ArchivedOutcome outcome) {
  switch (outcome) {
    case ArchivedOutcome::kGenuine:
      return "genuine";
    case ArchivedOutcome::kError:
      return "error";
    case ArchivedOutcome::kTimedOut:
      return "timed_out";
  }
  return "unknown";
}

}  // namespace muster
