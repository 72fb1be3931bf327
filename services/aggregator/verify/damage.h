// Damage of stored results and archives: its descriptions, and its record.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFY_DAMAGE_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFY_DAMAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/clock.h"
#include "services/common/store/state_store.h"

namespace muster {

// Each finder describes the same damage in the same words, so that it is recorded once.
inline constexpr std::string_view kMissingFile = "the stored file is missing";
inline constexpr std::string_view kWrongCrc32c = "the CRC32C differs";
inline constexpr std::string_view kWrongSha256 = "the SHA-256 differs";
std::string WrongSize(int64_t stored, int64_t recorded);
std::string CannotBeOpened(const absl::Status& why);
std::string CannotBeRead(const absl::Status& why);

// Returns true if the error of an open or a read proves that stored bytes are lost. After another
// one, the next read may succeed.
bool IsLoss(const absl::Status& status);

// Identifies stored bytes.
struct StoredObjectId {
  ResultKey key;  // of an archive: without plugin and node
  int64_t generation = 0;
  std::string blob;
};

// Records damage, and the end of it, in the store and the audit log. Thread-safe.
class DamageRecorder {
 public:
  // `actor`: in the audit log. The store and the clock must outlive this object.
  DamageRecorder(StateStore& store, const Clock& clock, Actor actor)
      : store_(&store), clock_(&clock), actor_(std::move(actor)) {}

  // Records that the object is damaged; with an empty text: that it is intact. Changes nothing if
  // the record is equal, or if the object was replaced, repaired or deleted. `keep_declined`: as in
  // RecordDamage. Waits for the disk.
  absl::StatusOr<RecordDamage::Result> Record(const StoredObjectId& object, std::string_view damage,
                                              bool keep_declined = false) const;

 private:
  StateStore* store_;
  const Clock* clock_;
  Actor actor_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFY_DAMAGE_H_
