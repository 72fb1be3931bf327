#include "cli/output/deployment_view.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"
#include "cli/output/table.h"
#include "services/common/base/sha256.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr int kNodesShown = 50;
constexpr int kFilesShown = 20;

// Returns null for text that is no JSON.
Json ParsedOrNull(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json(nullptr) : json;
}

std::string TimeOrEmpty(bool has_time, const google::protobuf::Timestamp& time) {
  return has_time ? Rfc3339(FromProto(time)) : "";
}

Json ToJson(const v1::DeploymentNode& node) {
  Json json = {{"node", node.node()},
               {"start_time", TimeOrEmpty(node.has_start_time(), node.start_time())}};
  json["final"] = node.has_final() ? cli::ToJson(node.final()) : Json(nullptr);
  json["outputs"] = node.has_outputs() ? cli::ToJson(node.outputs()) : Json(nullptr);
  return json;
}

std::string Outcome(const v1::Deployment& deployment, const v1::DeploymentNode& node) {
  if (!node.has_final() && HasEnded(deployment)) {
    return "unknown: the root relay has no outcome of this node";
  }
  if (!node.has_final()) return node.has_start_time() ? "running" : "waiting";
  const std::string failure = FailureText(node.final());
  return failure.empty() ? "succeeded" : failure;
}

}  // namespace

std::string StateWord(v1::DeploymentState state) {
  return absl::AsciiStrToLower(
      v1::DeploymentState_Name(state).substr(std::strlen("DEPLOYMENT_STATE_")));
}

bool HasEnded(const v1::Deployment& deployment) {
  return deployment.state() != v1::DEPLOYMENT_STATE_PENDING &&
         deployment.state() != v1::DEPLOYMENT_STATE_RUNNING;
}

Json ToJson(const v1::TemplateType& type) {
  Json json = {{"name", type.name()},
               {"version", type.version()},
               {"description", type.description()},
               {"image", type.image()},
               {"ad_hoc", type.ad_hoc()},
               {"actions", std::vector<std::string>(type.actions().begin(), type.actions().end())},
               {"document_sha256", type.document_sha256()},
               {"created_by", type.created_by()},
               {"create_time", Rfc3339(FromProto(type.create_time()))}};
  if (!type.document().empty()) json["document"] = ParsedOrNull(type.document());
  return json;
}

Json ToJson(const v1::Template& own) {
  Json json = {{"name", own.name()},
               {"version", own.version()},
               {"description", own.description()},
               {"type", own.type()},
               {"document_sha256", own.document_sha256()},
               {"created_by", own.created_by()},
               {"create_time", Rfc3339(FromProto(own.create_time()))}};
  if (!own.document().empty()) json["document"] = ParsedOrNull(own.document());
  return json;
}

Json ToJson(const v1::Deployment& deployment) {
  Json parameters = Json::array();
  for (const v1::DeploymentParameter& parameter : deployment.parameters()) {
    parameters.push_back({{"name", parameter.name()},
                          {"value", ParsedOrNull(parameter.value())},
                          {"source", parameter.source()},
                          {"sensitive", parameter.sensitive()}});
  }
  Json files = Json::array();
  for (const v1::DeploymentFile& file : deployment.files()) {
    files.push_back({{"path", file.path()},
                     {"size", file.size()},
                     {"sha256", ToHex(file.sha256())},
                     {"executable", file.executable()}});
  }
  Json nodes = Json::array();
  for (const v1::DeploymentNode& node : deployment.nodes()) nodes.push_back(ToJson(node));
  return {{"deployment", deployment.deployment()},
          {"job", deployment.job()},
          {"type", deployment.type()},
          {"template", deployment.template_()},
          {"action", deployment.action()},
          {"image", deployment.image()},
          {"state", StateWord(deployment.state())},
          {"problem", deployment.problem()},
          {"created_by", deployment.created_by()},
          {"create_time", Rfc3339(FromProto(deployment.create_time()))},
          {"end_time", TimeOrEmpty(deployment.has_end_time(), deployment.end_time())},
          {"targets", deployment.targets()},
          {"succeeded", deployment.succeeded()},
          {"parameters", parameters},
          {"files", files},
          {"nodes", nodes}};
}

std::string SubjectOf(const v1::Deployment& deployment) {
  return deployment.template_().empty() ? deployment.type() : deployment.template_();
}

std::string DeploymentTable(const v1::Deployment& deployment, int width) {
  const auto human = [](const google::protobuf::Timestamp& time) {
    return HumanTime(FromProto(time), absl::Now());
  };
  Table table({{"DEPLOYMENT"}, {deployment.deployment()}});
  if (!deployment.template_().empty()) table.AddRow({"template", deployment.template_()});
  table.AddRow({"type", deployment.type()});
  table.AddRow({"action", deployment.action()});
  table.AddRow({"image", deployment.image()});
  table.AddRow({"state", StateWord(deployment.state())});
  if (!deployment.problem().empty()) table.AddRow({"problem", deployment.problem()});
  table.AddRow({"created", absl::StrCat(human(deployment.create_time()), " by ",
                                        ShortName(deployment.created_by()))});
  if (deployment.has_end_time()) table.AddRow({"ended", human(deployment.end_time())});
  table.AddRow({"job", deployment.job()});
  for (const v1::DeploymentParameter& parameter : deployment.parameters()) {
    table.AddRow(
        {"parameter", absl::StrCat(parameter.name(), " = ",
                                   parameter.sensitive() ? "(sensitive)" : parameter.value(), "  (",
                                   parameter.source(), ")")});
  }
  for (int i = 0; i < std::min(deployment.files_size(), kFilesShown); ++i) {
    const v1::DeploymentFile& file = deployment.files(i);
    table.AddRow({"file", absl::StrCat(Printable(file.path()), "  ", HumanSize(file.size()),
                                       "  sha256 ", ToHex(file.sha256()).substr(0, 12))});
  }
  if (deployment.files_size() > kFilesShown) {
    table.AddRow(
        {"", absl::StrCat("and ", deployment.files_size() - kFilesShown, " more files: --json")});
  }
  int shown = 0;
  for (const v1::DeploymentNode& node : deployment.nodes()) {
    if (++shown > kNodesShown) continue;
    table.AddRow({"node", absl::StrCat(node.node(), ": ", Outcome(deployment, node))});
    for (const auto& output : node.outputs().outputs()) {
      table.AddRow(
          {"output", absl::StrCat(node.node(), ": ", output.name(), " = ",
                                  output.value().empty() ? "(sensitive)" : output.value())});
    }
  }
  if (shown > kNodesShown) {
    table.AddRow({"", absl::StrCat("and ", shown - kNodesShown, " more nodes: --json")});
  }
  return table.Render(width);
}

}  // namespace muster::cli
