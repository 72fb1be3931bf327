// A blob store for tests that change some calls of another one.
#ifndef MUSTER_SERVICES_COMMON_BLOB_FORWARDING_BLOB_STORE_H_
#define MUSTER_SERVICES_COMMON_BLOB_FORWARDING_BLOB_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/blob/blob_store.h"

namespace muster {

class ForwardingBlobStore : public BlobStore {
 public:
  explicit ForwardingBlobStore(BlobStore& blobs) : blobs_(blobs) {}

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id, int64_t size) override {
    return blobs_.Stage(id, size);
  }
  absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view id) override {
    return blobs_.Resume(id);
  }
  absl::StatusOr<int64_t> StagedSize(std::string_view id) override { return blobs_.StagedSize(id); }
  absl::Status DiscardStaged(std::string_view id) override { return blobs_.DiscardStaged(id); }
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name, int64_t at) override {
    return blobs_.Open(name, at);
  }
  absl::StatusOr<int64_t> Size(std::string_view name) override { return blobs_.Size(name); }
  absl::Status SyncName(std::string_view name) override { return blobs_.SyncName(name); }
  absl::Status Remove(std::string_view name) override { return blobs_.Remove(name); }
  absl::Status RemoveAll(std::string_view prefix) override { return blobs_.RemoveAll(prefix); }
  absl::StatusOr<std::vector<std::string>> ListStaged() override { return blobs_.ListStaged(); }
  absl::StatusOr<std::vector<std::string>> ListBelow(std::string_view prefix) override {
    return blobs_.ListBelow(prefix);
  }
  absl::StatusOr<std::vector<std::string>> ListFolders(std::string_view prefix) override {
    return blobs_.ListFolders(prefix);
  }
  absl::StatusOr<int64_t> Available() override { return blobs_.Available(); }

 private:
  BlobStore& blobs_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FORWARDING_BLOB_STORE_H_
