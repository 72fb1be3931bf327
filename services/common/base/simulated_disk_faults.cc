// Faults and the loss of power.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

constexpr int64_t kSector = 512;

bool Toss(std::mt19937_64& chance) { return (chance() & 1) != 0; }

}  // namespace

absl::Status SimulatedDisk::Enter(Call call, std::string_view subject, bool changes) {
  if (before_call_) {
    const std::function<void()> hook = before_call_;
    mutex_.Unlock();
    hook();
    mutex_.Lock();
  }
  if (changes && !powered_off_) {
    ++changes_;
    if (power_off_at_ >= 0 && changes_ >= power_off_at_) powered_off_ = true;
  }
  if (powered_off_) return ErrnoError(EIO, "no power:", subject);
  if (power_off_after_ && power_off_after_->first == call && --power_off_after_->second == 0) {
    power_off_at_ = changes_ + 1;
  }
  const auto fault = faults_.find(call);
  if (fault == faults_.end() || --fault->second.first > 0) return absl::OkStatus();
  const int error_number = fault->second.second;
  faults_.erase(fault);
  return ErrnoError(error_number, "injected fault:", subject);
}

void SimulatedDisk::PowerOffAt(int n) {
  MutexLock lock(mutex_);
  power_off_at_ = changes_ + n;
}

void SimulatedDisk::PowerOffAfter(Call call, int n) {
  MutexLock lock(mutex_);
  power_off_after_ = {call, n};
}

bool SimulatedDisk::powered_off() const {
  MutexLock lock(mutex_);
  return powered_off_;
}

int64_t SimulatedDisk::changes() const {
  MutexLock lock(mutex_);
  return changes_;
}

void SimulatedDisk::FailAt(Call call, int n, int error_number) {
  MutexLock lock(mutex_);
  faults_[call] = {n, error_number};
}

void SimulatedDisk::SetCapacity(int64_t capacity) {
  MutexLock lock(mutex_);
  capacity_ = capacity;
}

int64_t SimulatedDisk::used() const {
  MutexLock lock(mutex_);
  return Used();
}

void SimulatedDisk::FindNotDurable(const Node& folder, const std::string& path, bool durable,
                                   std::vector<std::string>& found) {
  for (const auto& [name, node] : folder.names) {
    const auto kept = folder.durable_names.find(name);
    const bool named = durable && kept != folder.durable_names.end() && kept->second == node;
    const std::string child = absl::StrCat(path, "/", name);
    if (node->type == FileType::kFolder) {
      FindNotDurable(*node, child, named, found);
    } else if (!named || node->content != node->durable) {
      found.push_back(child);
    }
  }
}

std::vector<std::string> SimulatedDisk::NotDurable(const std::string& folder) const {
  std::vector<std::string> all;
  std::vector<std::string> below;
  MutexLock lock(mutex_);
  FindNotDurable(*root_, "", true, all);
  for (std::string& path : all) {
    if (path.starts_with(folder + "/")) below.push_back(std::move(path));
  }
  return below;
}

std::vector<std::string> SimulatedDisk::SyncedAfterLoss() const {
  MutexLock lock(mutex_);
  return synced_after_loss_;
}

void SimulatedDisk::FlipBit(const std::string& path, int64_t offset) {
  MutexLock lock(mutex_);
  const NodePtr node = Find(path);
  if (node == nullptr || offset >= static_cast<int64_t>(node->content.size())) return;
  node->content[static_cast<size_t>(offset)] ^= 1;
  if (offset < static_cast<int64_t>(node->durable.size())) {
    node->durable[static_cast<size_t>(offset)] ^= 1;
  }
}

void SimulatedDisk::PowerOff() {
  MutexLock lock(mutex_);
  powered_off_ = true;
}

void SimulatedDisk::BeforeCall(std::function<void()> hook) {
  MutexLock lock(mutex_);
  before_call_ = std::move(hook);
}

void SimulatedDisk::Restart() {
  MutexLock lock(mutex_);
  ++life_;
  powered_off_ = false;
  power_off_at_ = -1;
  power_off_after_.reset();
  synced_after_loss_.clear();
  faults_.clear();
  ReleaseLocks(*root_);
}

void SimulatedDisk::ReleaseLocks(Node& node) {
  node.locked = false;
  for (const auto& [name, child] : node.names) ReleaseLocks(*child);
}

void SimulatedDisk::Crash(uint64_t seed) {
  MutexLock lock(mutex_);
  ++life_;
  powered_off_ = false;
  power_off_at_ = -1;
  power_off_after_.reset();
  synced_after_loss_.clear();
  faults_.clear();
  std::mt19937_64 chance(seed);
  std::vector<NodePtr> seen;
  Settle(root_, chance, seen);
}

void SimulatedDisk::Settle(const NodePtr& node, std::mt19937_64& chance,
                           std::vector<NodePtr>& seen) {
  if (std::find(seen.begin(), seen.end(), node) != seen.end()) return;
  seen.push_back(node);
  node->locked = false;
  node->reserved = 0;
  if (node->type == FileType::kFile) {
    WriteSome(*node, chance);
    node->content = node->durable;
    return;
  }
  CrashNames(node, chance);
  for (const auto& [name, child] : node->names) Settle(child, chance, seen);
}

// Makes some of the unsynced changes durable, and forgets the others.
void SimulatedDisk::WriteSome(Node& node, std::mt19937_64& chance) {
  std::string& survived = node.durable;
  for (const Write& write : node.unsynced) {
    if (write.truncate) {
      if (Toss(chance)) survived.resize(static_cast<size_t>(*write.truncate), '\0');
      continue;
    }
    const int64_t end = write.offset + static_cast<int64_t>(write.data.size());
    for (int64_t at = write.offset; at < end;) {
      const int64_t next = std::min(end, (at / kSector + 1) * kSector);
      const std::string_view part =
          std::string_view(write.data)
              .substr(static_cast<size_t>(at - write.offset), static_cast<size_t>(next - at));
      if (Toss(chance)) Put(survived, at, part);
      at = next;
    }
  }
  node.unsynced.clear();
}

void SimulatedDisk::CrashNames(const NodePtr& folder, std::mt19937_64& chance) {
  for (const NameChange& change : folder->unsynced_names) {
    if (!Toss(chance)) continue;
    if (change.node != nullptr) {
      folder->durable_names[change.name] = change.node;
    } else if (change.moved_node == nullptr) {
      folder->durable_names.erase(change.name);
    } else {
      // The old name of a rename: it is removed only if the new one is durable.
      const NodePtr target = change.moved_folder.lock();
      if (target == nullptr) continue;
      const auto& names = target->durable_names;
      const auto moved = names.find(change.moved_name);
      if (moved != names.end() && moved->second == change.moved_node) {
        folder->durable_names.erase(change.name);
      }
    }
  }
  folder->unsynced_names.clear();
  folder->names = folder->durable_names;
}

}  // namespace muster
