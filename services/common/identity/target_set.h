// The nodes that a command is for, as one digest that its signer signs, so that each node can check
// that it is among them without being told the others.
//
// The digest is the root of a Merkle tree over the sorted names: a leaf is SHA-256(0x00 name), a
// node above SHA-256(0x01 left right); one that is left over at the end of a level moves up as it
// is. The different first bytes keep a node of the tree from being taken for a name.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_TARGET_SET_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_TARGET_SET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Immutable; thread-safe. Takes about 64 bytes a name beside the names.
class TargetSet {
 public:
  // Sorts the names and drops those that are there twice.
  explicit TargetSet(std::vector<std::string> names);

  size_t size() const { return names_.size(); }

  // In order; the place of a name is its index.
  const std::vector<std::string>& names() const { return names_; }

  // 32 bytes; empty for a set without names.
  std::string root() const;

  // The siblings on the way up from the leaf of the name at `index`, which is below size().
  std::vector<std::string> Proof(size_t index) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> levels_;  // the leaves first, the root last
};

// Whether `name` is at `index` of the `count` names under `root`. Whatever the arguments hold.
bool VerifyTarget(std::string_view name, int64_t index, int64_t count,
                  std::span<const std::string> proof, std::string_view root);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_TARGET_SET_H_
