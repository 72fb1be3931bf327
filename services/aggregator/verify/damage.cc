#include "services/aggregator/verify/damage.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

// Returns what could not be recorded.
std::string Finding(const ResultKey& key, std::string_view damage) {
  const std::string name =
      key.plugin.empty() ? "the archive" : absl::StrCat(key.plugin, "/", key.node);
  return absl::StrCat("record that ", name, " of run ", key.run, " is ",
                      damage.empty() ? "intact" : absl::StrCat("damaged: ", ToAbsl(damage)));
}

}  // namespace

std::string WrongSize(int64_t stored, int64_t recorded) {
  return absl::StrCat("stored are ", stored, " bytes instead of ", recorded);
}

std::string CannotBeOpened(const absl::Status& why) {
  return absl::StrCat("cannot be opened: ", why.message());
}

std::string CannotBeRead(const absl::Status& why) {
  return absl::StrCat("cannot be read: ", why.message());
}

bool IsLoss(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsOutOfRange(status);
}

absl::StatusOr<RecordDamage::Result> DamageRecorder::Record(const StoredObjectId& object,
                                                            std::string_view damage,
                                                            bool keep_declined) const {
  RecordDamage command;
  command.key = object.key;
  command.generation = object.generation;
  command.blob = object.blob;
  command.damage = std::string(damage);
  command.actor = actor_;
  command.at = absl::ToUnixMicros(clock_->Now());
  command.keep_declined = keep_declined;
  auto recorded = store_->ApplyAndWait(std::move(command));
  if (!recorded.ok()) return Annotate(recorded.status(), Finding(object.key, damage));
  return recorded;
}

}  // namespace muster
