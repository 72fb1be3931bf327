#include "cli/commands/conformance_due.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

using Names = std::vector<std::string>;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000'000);

class ConformanceDueTest : public ::testing::Test {
 protected:
  // Attaches a node whose Docker has its version for this time.
  v1::ListAttachedResponse::Child& Attach(const std::string& node, absl::Duration version_age) {
    auto& child = attached_[node];
    child.set_attached(true);
    auto& docker = *child.mutable_info()->add_adapters();
    docker.set_name("docker");
    ToProto(kNow - version_age, docker.mutable_version_time());
    return child;
  }
  void Report(const std::string& node, absl::Duration age) {
    v1::NodeConformance& report = reports_.emplace_back();
    report.set_node(node);
    ToProto(kNow - age, report.mutable_report_time());
  }
  Names Due() const { return DueNodes(attached_, reports_, absl::Hours(100), kNow); }

  AttachedMap attached_;
  std::vector<v1::NodeConformance> reports_;
};

TEST_F(ConformanceDueTest, NodeWithoutAReportIsDue) {
  Attach("n2", absl::Hours(1));
  Attach("n1", absl::Hours(1));
  EXPECT_EQ(Due(), (Names{"n1", "n2"}));
}

TEST_F(ConformanceDueTest, ReportIsRenewedAfterItsTime) {
  Attach("n1", absl::Hours(1'000));
  Attach("n2", absl::Hours(1'000));
  Report("n1", absl::Hours(100));
  Report("n2", absl::Hours(99));
  EXPECT_EQ(Due(), Names{"n1"});
}

TEST_F(ConformanceDueTest, NewVersionOfDockerIsDue) {
  Attach("n1", absl::Hours(2));
  Attach("n2", absl::Hours(4));
  Attach("n3", absl::Hours(-1));  // its clock is ahead
  for (const char* node : {"n1", "n2", "n3"}) Report(node, absl::Hours(3));
  EXPECT_EQ(Due(), Names{"n1"});
}

TEST_F(ConformanceDueTest, NodeThatCannotRunContainersIsNotDue) {
  Attach("n1", absl::Hours(1)).set_attached(false);
  Attach("n2", absl::Hours(1)).mutable_info()->mutable_adapters(0)->set_problem("unreachable");
  Attach("n3", absl::Hours(1)).mutable_info()->mutable_adapters(0)->set_name("process");
  Attach("n4", absl::Hours(1)).set_is_relay(true);
  EXPECT_EQ(Due(), Names{});
}

}  // namespace
}  // namespace muster::cli
