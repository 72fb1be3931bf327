#include <gtest/gtest.h>

#include "services/common/store/contract/change_feed_contract.h"
#include "services/common/store/contract/state_store_contract.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

std::unique_ptr<StoreHarness> MakeHarness() {
  return std::make_unique<SqliteHarness>(SqliteStoreOptions{.retained_changes = 100});
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StateStoreContract,
                         ::testing::Values(StoreHarnessFactory(MakeHarness)));
INSTANTIATE_TEST_SUITE_P(Sqlite, RetentionContract,
                         ::testing::Values(StoreHarnessFactory(MakeHarness)));
INSTANTIATE_TEST_SUITE_P(Sqlite, NodeStoreContract,
                         ::testing::Values(StoreHarnessFactory(MakeHarness)));
INSTANTIATE_TEST_SUITE_P(Sqlite, ChangeFeedContract,
                         ::testing::Values(StoreHarnessFactory(MakeHarness)));

}  // namespace
}  // namespace muster
