#include "services/aggregator/simulation/journal_history.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/crash_history.h"

namespace muster::testing {
namespace {

constexpr char kPath[] = "/m/journal";
constexpr JournalOptions kOptions = {.max_record = 4'000, .max_unsynced = 9'000};

}  // namespace

absl::Status JournalHistory::Open(FileOps& disk, bool faulty) {
  std::vector<std::string> found;
  auto journal = Journal::Open(disk, kPath, [&](std::string_view record, int64_t) {
    found.emplace_back(record);
    return absl::OkStatus();
  });
  if (absl::IsNotFound(journal.status())) {
    if (created_) return Broken("the journal is lost");
    journal = Journal::Create(disk, kPath, kOptions);
    if (!journal.ok()) return faulty ? absl::OkStatus() : Broken("no journal can be created");
    created_ = true;
  } else if (!journal.ok()) {
    if (faulty && !absl::IsDataLoss(journal.status())) return absl::OkStatus();
    return Broken(absl::StrCat("the journal does not open: ", journal.status().ToString()));
  }
  if (found.size() < kept_) {
    return Broken(absl::StrCat("the journal has ", found.size(), " records of ", kept_));
  }
  const bool prefix =
      found.size() <= appended_.size() && std::equal(found.begin(), found.end(), appended_.begin());
  if (!prefix) return Broken("the journal has other records than the appended ones");
  created_ = true;
  appended_ = std::move(found);
  durable_ = kept_ = appended_.size();
  journal_ = *std::move(journal);
  return absl::OkStatus();
}

absl::Status JournalHistory::CheckDurable(const SimulatedDisk& disk) const {
  if (journal_ == nullptr || durable_ == 0 || disk.HasDurableName(kPath)) return absl::OkStatus();
  return Broken("the journal has durable records, but its name is not durable");
}

void JournalHistory::Use(std::mt19937_64& chance) {
  if (journal_ == nullptr) return;
  if (chance() % 3 == 0) {
    if (journal_->Sync().ok()) durable_ = appended_.size();
    return;
  }
  const size_t most = chance() % 3 == 0 ? kOptions.max_record : 200;
  std::string record(1 + chance() % most, static_cast<char>('a' + appended_.size() % 26));
  const int64_t durable_before = journal_->durable_end();
  const bool appended = journal_->Append(record).ok();
  // It syncs the earlier records when it holds too many that are not synced.
  if (journal_->durable_end() > durable_before) durable_ = appended_.size();
  if (!appended) return;
  appended_.push_back(std::move(record));
  kept_ = appended_.size();
}

}  // namespace muster::testing
