// Copies of a state database that is in use.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_BACKUP_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_BACKUP_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster::sqlite {

// Copies a database to a new file (0600). The copy is one consistent state, also while another
// process commits. Only reads the original.
absl::Status CopyDatabase(const std::string& from, const std::string& to);

// The record of a blob.
struct RecordedBlob {
  std::string sha256;  // of its bytes; empty if the record has none
  std::string run;
  std::string plugin;  // empty for an archive, as the node
  std::string node;

  bool operator==(const RecordedBlob&) const = default;
};

// Returns the blobs in the records of a copied state database, by name.
absl::StatusOr<std::map<std::string, RecordedBlob>> RecordedBlobs(const std::string& path);

// Gives the change feed of a restored state database another identity, because its sequences repeat
// those of the original: followers must not continue at their cursors.
absl::Status RenewFeed(const std::string& path);

}  // namespace muster::sqlite

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_BACKUP_H_
