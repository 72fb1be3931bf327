#include "services/relay/topology/update_judge.h"

#include <cstdint>

namespace muster {
namespace {

// Seconds between the statement for a new parent and the end of the attachment to the former one.
constexpr int64_t kAdoption = 60;

int64_t Expires(const TopologyEntry& entry) {
  return entry.statement == nullptr ? 0 : entry.statement->expire_time().seconds();
}

}  // namespace

UpdateEffect JudgeUpdate(const TopologyEntry& reported, const KnownSubject& known,
                         std::string_view child, bool first_list) {
  if (known.entry == nullptr) {
    if (reported.attached) return UpdateEffect::kAttach;
    // Unknown detached entries are accepted in the first list only: a later one was removed here.
    // Without a statement they may be invented.
    return first_list && reported.statement != nullptr ? UpdateEffect::kAdd : UpdateEffect::kNone;
  }
  // The stream is newer than the report, unless the statement is newer than that of the stream: the
  // node has moved.
  if (known.has_stream) {
    const bool moved = reported.attached && Expires(reported) > Expires(*known.entry);
    return moved ? UpdateEffect::kTakeOver : UpdateEffect::kNone;
  }
  if (!reported.attached) {
    return known.via == child || known.via.empty() ? UpdateEffect::kDetach : UpdateEffect::kNone;
  }
  // A former parent has an older statement. The new parent may have one that was signed shortly
  // before the last one for the former parent.
  const bool elsewhere = known.entry->attached && known.via != child;
  const bool older = Expires(reported) + kAdoption < Expires(*known.entry);
  return elsewhere && older ? UpdateEffect::kNone : UpdateEffect::kAttach;
}

}  // namespace muster
