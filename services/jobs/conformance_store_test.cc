#include "services/jobs/conformance_store.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/deployment_store.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/page_size.h"

namespace muster {
namespace {

constexpr const char* kReport =
    R"({"version":1,"status":"pass","probes":[{"id":"a","status":"pass"}]})";

class ConformanceStoreTest : public ::testing::Test {
 protected:
  ConformanceStoreTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    deployments_ = std::make_unique<DeploymentStore>(*database_);
    store_ = std::make_unique<ConformanceStore>(*database_);
  }
  ~ConformanceStoreTest() override {
    store_.reset();
    deployments_.reset();
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Stores the records of the type on a node, whose last one has this time, or none, as those of
  // the deployment ("d-NODE" + `again`).
  void Probe(const std::string& node, const std::optional<absl::Time>& time,
             const std::string& again = "") {
    v1::Deployment message;
    message.set_deployment(absl::StrCat("d-", node, again));
    message.set_job(absl::StrCat("j-", node, again));
    message.set_created_by("ann");
    message.set_type("conformance@1.0.0");
    message.set_state(v1::DEPLOYMENT_STATE_PENDING);
    v1::CreateDeploymentRequest request;
    request.add_nodes(node);
    ASSERT_TRUE(deployments_->Create(message, request).ok());
    v1::WatchJobResponse response;
    response.set_position(2);
    v1::JobRecord& outputs = *response.add_records();
    outputs.set_node(node);
    auto& output = *outputs.mutable_outputs()->add_outputs();
    output.set_name("report");
    output.set_value(kReport);
    v1::JobRecord& final = *response.add_records();
    final.set_node(node);
    if (time) ToProto(*time, final.mutable_time());
    final.mutable_final()->set_outcome(v1::JOB_OUTCOME_EXITED);
    final.mutable_final()->set_records_verified(true);
    ASSERT_TRUE(deployments_->AddRecords(message.deployment(), response, nullptr).ok());
  }

  absl::Time TimeOf(const std::string& node) {
    const auto found = store_->Get(node, absl::Now());
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? FromProto(found->report_time()) : absl::InfinitePast();
  }

  // Passes each page of the list to `check`. Returns the number of nodes.
  size_t ReadPages(absl::FunctionRef<void(const std::vector<v1::NodeConformance>& page)> check) {
    std::string token;
    size_t count = 0;
    do {
      std::string next;
      const auto page = store_->List(token, 1'000, absl::Now(), &next);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok() || page->empty()) {
        ADD_FAILURE() << "no page after " << token;
        return count;
      }
      check(*page);
      count += page->size();
      token = next;
    } while (!token.empty());
    return count;
  }

  const std::string folder_ = ::testing::TempDir() + "/conformance-store";
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<DeploymentStore> deployments_;
  std::unique_ptr<ConformanceStore> store_;
};

// The outcome of an earlier deployment may arrive after that of a later one.
TEST_F(ConformanceStoreTest, EarlierReportDoesNotReplaceALaterOne) {
  const absl::Time later = absl::FromUnixSeconds(1'700'000'000);
  Probe("n1", later, "-2");
  Probe("n1", later - absl::Hours(1), "-1");
  EXPECT_EQ(TimeOf("n1"), later);
  EXPECT_EQ(store_->Get("n1", absl::Now())->deployment(), "d-n1-2");
}

TEST_F(ConformanceStoreTest, ReportHasTheTimeOfItsRecordButNoLaterOne) {
  const absl::Time begin = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()));
  const absl::Time before = absl::FromUnixSeconds(1'700'000'000);
  Probe("late", before);
  Probe("clock-ahead", begin + absl::Hours(24 * 365));
  Probe("no-time", std::nullopt);
  EXPECT_EQ(TimeOf("late"), before);
  for (const char* node : {"clock-ahead", "no-time"}) {
    EXPECT_GE(TimeOf(node), begin) << node;
    EXPECT_LE(TimeOf(node), absl::Now()) << node;
  }
}

// Other readers of the database wait for one page.
TEST_F(ConformanceStoreTest, PageIsBoundedByTheBytesOfItsReports) {
  Probe("n0", std::nullopt);
  constexpr size_t kReportBytes = 32 << 10;
  constexpr int kNodes = 100;
  const absl::Status filled = database_->Write([&](sqlite::Connection& db) {
    for (int i = 1; i < kNodes; ++i) {
      db.Run(
          "INSERT INTO conformance_reports SELECT ?, deployment, type, received_at, ? "
          "FROM conformance_reports WHERE node = 'n0'",
          absl::StrCat("n", i), absl::StrCat(kReport, std::string(kReportBytes, ' ')));
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(filled.ok()) << filled;
  const size_t count = ReadPages([](const std::vector<v1::NodeConformance>& page) {
    EXPECT_LE(page.size(), kMaxPageBytes / kReportBytes + 2);
    EXPECT_EQ(page.front().status(), "pass");
  });
  EXPECT_EQ(count, size_t{kNodes});
}

// Reports without the probes of the baseline are small, and differ in each of them.
TEST_F(ConformanceStoreTest, PageIsBoundedByTheBytesOfItsDifferences) {
  Probe("n0", std::nullopt);
  constexpr int kNodes = 1'000;
  std::string probes;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&probes, i > 0 ? "," : "", R"({"id":")", std::string(60, 'p'), i,
                    R"(","status":"pass"})");
  }
  const absl::Status filled = database_->Write([&](sqlite::Connection& db) {
    for (int i = 1; i < kNodes; ++i) {
      db.Run(
          "INSERT INTO conformance_reports SELECT ?, deployment, type, received_at, report "
          "FROM conformance_reports WHERE node = 'n0'",
          absl::StrCat("n", i));
    }
    db.Run("UPDATE conformance_reports SET report = ? WHERE node = 'n0'",
           absl::StrCat(R"({"version":1,"status":"pass","probes":[)", probes, "]}"));
    return absl::OkStatus();
  });
  ASSERT_TRUE(filled.ok()) << filled;
  v1::ConformanceBaseline baseline;
  baseline.set_node("n0");
  ASSERT_TRUE(store_->SetBaseline(baseline).ok());
  const size_t count = ReadPages([](const std::vector<v1::NodeConformance>& page) {
    size_t bytes = 0;
    for (const v1::NodeConformance& node : page) bytes += node.ByteSizeLong();
    EXPECT_LT(bytes, 2 * kMaxPageBytes);
  });
  EXPECT_EQ(count, size_t{kNodes});
}

}  // namespace
}  // namespace muster
