// A temporary folder with a SQLite store, for tests.
#ifndef MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_HARNESS_H_
#define MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_HARNESS_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/contract/store_harness.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster {

class TempFolder {
 public:
  TempFolder() : path_(::testing::TempDir() + "store_XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~TempFolder() { EXPECT_TRUE(RemoveTree(PosixFileOps(), path_).ok()); }
  TempFolder(const TempFolder&) = delete;
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

class SqliteHarness final : public StoreHarness {
 public:
  explicit SqliteHarness(SqliteStoreOptions options = {}) : options_(std::move(options)) {
    options_.path = folder_ / "state.db";
  }

  absl::Status Open() override {
    store_.reset();
    ASSIGN_OR_RETURN(store_, OpenSqliteStore(options_));
    return absl::OkStatus();
  }
  void Close() { store_.reset(); }

  StateStore& state() override { return *store_; }
  ChangeFeed& feed() override { return *store_; }
  SqliteStore& sqlite() { return *store_; }
  const std::string& path() const { return options_.path; }
  SqliteStoreOptions& options() { return options_; }

 private:
  TempFolder folder_;
  SqliteStoreOptions options_;
  std::unique_ptr<SqliteStore> store_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_SQLITE_SQLITE_HARNESS_H_
