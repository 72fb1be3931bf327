// The set of target nodes of a command as one digest, which the signer signs. Each node can verify
// that it is a target without knowing the other targets.
//
// The digest is the root of a Merkle tree over the sorted names. A leaf is SHA-256(0x00 name), an
// inner node SHA-256(0x01 left right). The last node of a level with an odd number of nodes moves
// up unchanged. The different first bytes prevent an inner node from being a name.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_TARGET_SET_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_TARGET_SET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Immutable; thread-safe. Needs about 64 bytes for each name, in addition to the name.
class TargetSet {
 public:
  // Sorts the names and removes duplicates.
  explicit TargetSet(std::vector<std::string> names);

  size_t size() const { return names_.size(); }

  // The sorted names; the index of a name is its position.
  const std::vector<std::string>& names() const { return names_; }

  // Returns 32 bytes; empty for a set without names.
  std::string root() const;

  // Returns the siblings on the path from the leaf of the name at `index` to the root. `index` must
  // be less than size().
  std::vector<std::string> Proof(size_t index) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> levels_;  // the leaves first, the root last
};

// Returns true if `name` is at `index` of the `count` names under `root`. The arguments may have
// any content.
bool VerifyTarget(std::string_view name, int64_t index, int64_t count,
                  std::span<const std::string> proof, std::string_view root);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_TARGET_SET_H_
