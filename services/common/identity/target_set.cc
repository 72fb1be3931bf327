#include "services/common/identity/target_set.h"

#include <algorithm>
#include <utility>

#include "services/common/base/sha256.h"

namespace muster {
namespace {

std::string LeafOf(std::string_view name) {
  Sha256 hash;
  hash.Update(std::string_view("\0", 1));
  hash.Update(name);
  return DigestBytes(hash.Finish());
}

std::string Above(std::string_view left, std::string_view right) {
  Sha256 hash;
  hash.Update(std::string_view("\1", 1));
  hash.Update(left);
  hash.Update(right);
  return DigestBytes(hash.Finish());
}

}  // namespace

TargetSet::TargetSet(std::vector<std::string> names) : names_(std::move(names)) {
  std::ranges::sort(names_);
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  std::vector<std::string> level;
  level.reserve(names_.size());
  for (const std::string& name : names_) level.push_back(LeafOf(name));
  while (level.size() > 1) {
    std::vector<std::string> above;
    above.reserve((level.size() + 1) / 2);
    for (size_t i = 0; i < level.size(); i += 2) {
      above.push_back(i + 1 < level.size() ? Above(level[i], level[i + 1]) : level[i]);
    }
    levels_.push_back(std::exchange(level, std::move(above)));
  }
  levels_.push_back(std::move(level));
}

std::string TargetSet::root() const {
  return levels_.back().empty() ? std::string() : levels_.back().front();
}

std::vector<std::string> TargetSet::Proof(size_t index) const {
  std::vector<std::string> proof;
  for (const std::vector<std::string>& level : levels_) {
    const size_t sibling = index ^ 1;
    if (sibling < level.size()) proof.push_back(level[sibling]);
    index /= 2;
  }
  return proof;
}

bool VerifyTarget(std::string_view name, int64_t index, int64_t count,
                  std::span<const std::string> proof, std::string_view root) {
  if (index < 0 || index >= count) return false;
  std::string digest = LeafOf(name);
  for (; count > 1; index /= 2, count = count / 2 + count % 2) {
    const bool left_over = index == count - 1 && index % 2 == 0;
    if (left_over) continue;
    if (proof.empty() || proof.front().size() != kSha256Size) return false;
    digest = index % 2 == 0 ? Above(digest, proof.front()) : Above(proof.front(), digest);
    proof = proof.subspan(1);
  }
  return proof.empty() && digest == root;
}

}  // namespace muster
