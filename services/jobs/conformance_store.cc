#include "services/jobs/conformance_store.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/templates.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/audit_outbox.h"
#include "services/jobs/conformance_report.h"
#include "services/jobs/deployment_node.h"
#include "services/jobs/deployment_rows.h"
#include "services/jobs/page_size.h"

namespace muster {
namespace {

using sqlite::Blob;
using sqlite::Connection;
using sqlite::Rows;

constexpr size_t kNamedNodes = 10;
constexpr size_t kNodesAtOnce = 100;  // of one read: other readers of the database wait for it

// A baseline that can be compared.
struct Baseline {
  v1::ConformanceBaseline message;
  ConformanceReport report;
};

std::optional<v1::ConformanceBaseline> ReadBaseline(Connection& db) {
  Rows rows = db.Query("SELECT message FROM conformance_baseline");
  if (!rows.Next()) return std::nullopt;
  return Parsed<v1::ConformanceBaseline>(rows.Text());
}

std::optional<Baseline> Comparable(std::optional<v1::ConformanceBaseline> message) {
  if (!message) return std::nullopt;
  Baseline baseline;
  baseline.report = ReadConformanceReport(message->report()).value_or(ConformanceReport());
  baseline.message = *std::move(message);
  return baseline;
}

// Reads the columns node, deployment, type, received_at and report.
v1::NodeConformance ReadRow(Rows& rows) {
  v1::NodeConformance node;
  node.set_node(rows.Text());
  node.set_deployment(rows.Text());
  node.set_type(rows.Text());
  ToProto(absl::FromUnixMicros(rows.Int()), node.mutable_report_time());
  node.set_report(rows.Text());
  return node;
}

std::optional<v1::NodeConformance> ReadNode(Connection& db, const std::string& node) {
  Rows rows = db.Query(
      "SELECT node, deployment, type, received_at, report FROM conformance_reports WHERE node = ?",
      node);
  if (!rows.Next()) return std::nullopt;
  return ReadRow(rows);
}

// Sets what follows from the report and the baseline.
void Compare(const std::optional<Baseline>& baseline, absl::Time now, v1::NodeConformance* node) {
  const ConformanceReport report =
      ReadConformanceReport(node->report()).value_or(ConformanceReport());
  node->set_status(report.status);
  if (!baseline) return node->set_state(v1::CONFORMANCE_STATE_NO_BASELINE);
  for (v1::ProbeDifference& difference : CompareReports(baseline->report, report)) {
    *node->add_differences() = std::move(difference);
  }
  if (node->differences_size() > 0) return node->set_state(v1::CONFORMANCE_STATE_DIFFERENT);
  const bool outdated =
      FromProto(node->report_time()) + FromProto(baseline->message.max_age()) < now;
  node->set_state(outdated ? v1::CONFORMANCE_STATE_OUTDATED : v1::CONFORMANCE_STATE_CONFORMANT);
}

// Returns why the baseline does not admit the node; empty if it does.
std::string WhyNot(const std::optional<v1::NodeConformance>& node) {
  if (!node) return "it has no report";
  switch (node->state()) {
    case v1::CONFORMANCE_STATE_DIFFERENT: {
      const v1::ProbeDifference& first = node->differences(0);
      return absl::StrCat(first.probe(), first.status().empty() ? " is missing" : " does not pass",
                          node->differences_size() > 1
                              ? absl::StrCat(" (and ", node->differences_size() - 1, " more)")
                              : "");
    }
    case v1::CONFORMANCE_STATE_OUTDATED:
      return "its report is too old";
    default:
      return "";
  }
}

}  // namespace

void KeepReport(Connection& db, const v1::Deployment& deployment, const v1::DeploymentNode& node,
                const v1::JobRecord& end) {
  // Outputs that arrive without such an end may be of a relay.
  if (!IsConformanceType(deployment.type()) || !node.final().records_verified() ||
      !HasSucceeded(node)) {
    return;
  }
  const absl::Time time = end.has_time() ? FromProto(end.time()) : absl::InfiniteFuture();
  for (const v1::JobRecord::Outputs::Output& output : node.outputs().outputs()) {
    if (output.name() != kReportOutput) continue;
    if (!ReadConformanceReport(output.value())) {
      Log(LogLevel::kWarning, "a report of conformance is unusable; the earlier one stays",
          {{"node", node.node()}, {"deployment", deployment.deployment()}});
      continue;
    }
    db.Run(
        "INSERT INTO conformance_reports (node, deployment, type, received_at, report) "
        "VALUES (?, ?, ?, min(?, unixepoch() * 1000000), ?) "
        "ON CONFLICT (node) DO UPDATE SET deployment = excluded.deployment, type = excluded.type, "
        "received_at = excluded.received_at, report = excluded.report "
        "WHERE excluded.received_at >= received_at",  // an earlier one may arrive late
        node.node(), deployment.deployment(), deployment.type(), absl::ToUnixMicros(time),
        output.value());
  }
}

absl::StatusOr<std::vector<v1::NodeConformance>> ConformanceStore::List(std::string_view token,
                                                                        size_t limit,
                                                                        absl::Time now,
                                                                        std::string* next) {
  std::vector<v1::NodeConformance> page;
  std::optional<v1::ConformanceBaseline> message;
  next->clear();
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    message = ReadBaseline(db);
    Rows rows = db.Query(
        "SELECT node, deployment, type, received_at, report FROM conformance_reports "
        "WHERE node > ? ORDER BY node LIMIT ?",
        token, limit + 1);
    size_t bytes = 0;
    while (rows.Next()) {
      if (page.size() == limit || bytes > kMaxPageBytes) {
        *next = page.back().node();
        break;
      }
      bytes += page.emplace_back(ReadRow(rows)).report().size();
    }
    return absl::OkStatus();
  }));
  const auto baseline = Comparable(std::move(message));
  size_t bytes = 0;
  for (size_t i = 0; i < page.size(); ++i) {  // other readers do not wait for this
    Compare(baseline, now, &page[i]);
    page[i].clear_report();
    bytes += page[i].ByteSizeLong();  // the differences may have more bytes than the report
    if (bytes <= kMaxPageBytes || i + 1 == page.size()) continue;
    page.resize(i + 1);
    *next = page.back().node();
  }
  return page;
}

absl::StatusOr<v1::NodeConformance> ConformanceStore::Get(const std::string& node, absl::Time now) {
  std::optional<v1::NodeConformance> found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    found = ReadNode(db, node);
    if (found) Compare(Comparable(ReadBaseline(db)), now, &*found);
    return absl::OkStatus();
  }));
  if (!found) return errors::NoConformanceReport(node);
  return *std::move(found);
}

absl::StatusOr<v1::ConformanceBaseline> ConformanceStore::GetBaseline() {
  std::optional<v1::ConformanceBaseline> found;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    found = ReadBaseline(db);
    return absl::OkStatus();
  }));
  if (!found) return errors::NoBaseline();
  return *std::move(found);
}

absl::StatusOr<v1::ConformanceBaseline> ConformanceStore::SetBaseline(
    v1::ConformanceBaseline baseline, const std::string& vouched_by) {
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    const auto source = ReadNode(db, baseline.node());
    if (!source) {
      return db.failed() ? absl::OkStatus() : errors::NoConformanceReport(baseline.node());
    }
    baseline.set_deployment(source->deployment());
    baseline.set_type(source->type());
    baseline.set_report(source->report());
    db.Run("INSERT OR REPLACE INTO conformance_baseline (id, message) VALUES (1, ?)",
           Blob{Serialised(baseline)});
    AddAuditRecord(db, v1::AUDIT_KIND_CONFORMANCE, {baseline.set_by(), vouched_by}, baseline.node(),
                   "baseline set",
                   absl::StrCat("by the report of deployment ", baseline.deployment()),
                   FromProto(baseline.set_time()));
    return absl::OkStatus();
  }));
  return baseline;
}

absl::StatusOr<v1::ConformanceBaseline> ConformanceStore::RemoveBaseline(const ChangeOrigin& by,
                                                                         absl::Time now) {
  std::optional<v1::ConformanceBaseline> found;
  RETURN_IF_ERROR(database_.Write([&](Connection& db) -> absl::Status {
    found = ReadBaseline(db);
    if (!found) return db.failed() ? absl::OkStatus() : errors::NoBaseline();
    db.Run("DELETE FROM conformance_baseline");
    AddAuditRecord(db, v1::AUDIT_KIND_CONFORMANCE, by, found->node(), "baseline removed", "", now);
    return absl::OkStatus();
  }));
  return *std::move(found);
}

absl::StatusOr<std::vector<std::optional<v1::NodeConformance>>> ConformanceStore::ReadNodes(
    std::span<const std::string> nodes) {
  std::vector<std::optional<v1::NodeConformance>> page;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    page.clear();
    size_t bytes = 0;
    for (const std::string& name : nodes) {
      if (page.size() == kNodesAtOnce || bytes > kMaxPageBytes) break;
      page.push_back(ReadNode(db, name));
      if (page.back()) bytes += page.back()->report().size();
    }
    return absl::OkStatus();
  }));
  return page;
}

absl::Status ConformanceStore::CheckNodes(const std::vector<std::string>& nodes, absl::Time now) {
  std::vector<std::string> problems;
  size_t count = 0;
  std::optional<v1::ConformanceBaseline> message;
  RETURN_IF_ERROR(database_.Read([&](Connection& db) {
    message = ReadBaseline(db);
    return absl::OkStatus();
  }));
  const auto baseline = Comparable(std::move(message));
  if (!baseline) return absl::OkStatus();
  if (nodes.empty()) return errors::BaselineNeedsNodes();
  for (size_t begin = 0; begin < nodes.size();) {
    ASSIGN_OR_RETURN(auto page, ReadNodes(std::span(nodes).subspan(begin)));
    for (std::optional<v1::NodeConformance>& node : page) {
      if (node) Compare(baseline, now, &*node);
      const std::string why = WhyNot(node);
      const std::string& name = nodes[begin++];
      if (why.empty()) continue;
      ++count;
      if (problems.size() < kNamedNodes) problems.push_back(absl::StrCat(name, ": ", why));
    }
  }
  if (count == 0) return absl::OkStatus();
  std::string text = absl::StrJoin(problems, "; ");
  if (count > problems.size()) absl::StrAppend(&text, "; and ", count - problems.size(), " more");
  return errors::NotConformant(text);
}

}  // namespace muster
