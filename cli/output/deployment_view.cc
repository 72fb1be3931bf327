#include "cli/output/deployment_view.h"

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cli/output/deployment_workspace.h"
#include "cli/output/format.h"
#include "cli/output/job_next_step.h"
#include "cli/output/job_view.h"
#include "cli/output/table.h"
#include "services/common/base/sha256.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

constexpr int kNodesShown = 50;
constexpr int kFilesShown = 20;
constexpr int kNamesShown = 10;

// Returns null for text that is no JSON.
Json ParsedOrNull(const std::string& text) { return ParseExactJson<Json>(text).value; }

std::string TimeOrEmpty(bool has_time, const google::protobuf::Timestamp& time) {
  return has_time ? Rfc3339(FromProto(time)) : "";
}

Json ToJson(const v1::DeploymentNode& node) {
  Json json = {{"node", node.node()},
               {"start_time", TimeOrEmpty(node.has_start_time(), node.start_time())}};
  json["retried_by"] = node.retried_by();
  json["destroyed_by"] = node.destroyed_by();
  json["final"] = node.has_final() ? cli::ToJson(node.final()) : Json(nullptr);
  json["earlier"] = node.has_earlier() ? cli::ToJson(node.earlier()) : Json(nullptr);
  json["workspace_refused_time"] =
      TimeOrEmpty(node.has_workspace_refused_time(), node.workspace_refused_time());
  json["outputs"] = node.has_outputs() ? cli::ToJson(node.outputs()) : Json(nullptr);
  return json;
}

Json ToJson(const google::protobuf::RepeatedPtrField<v1::RelatedDeployment>& related) {
  Json json = Json::array();
  for (const v1::RelatedDeployment& one : related) {
    json.push_back({{"deployment", one.deployment()}, {"state", StateWord(one.state())}});
  }
  return json;
}

std::string Outcome(const v1::Deployment& deployment, const v1::DeploymentNode& node) {
  if (!node.has_final() && deployment.never_sent()) return "not started";
  if (!node.has_final() && HasEnded(deployment)) {
    return "no outcome: the root relay has none of this node";
  }
  if (!node.has_final()) return node.has_start_time() ? "running" : "waiting";
  std::string outcome = FailureText(node.final()).empty() ? "succeeded" : OutcomeText(node.final());
  if (node.has_earlier()) {
    absl::StrAppend(&outcome, " (reported late; before: ", OutcomePhrase(node.earlier().outcome()),
                    ")");
  }
  return outcome;
}

// Returns the nodes by name: the failed ones, those that have not ended, and the others.
std::vector<const v1::DeploymentNode*> FailedFirst(const v1::Deployment& deployment) {
  const auto rank = [&](const v1::DeploymentNode* node) {
    if (!node->has_final()) return HasEnded(deployment) ? 0 : 1;
    return FailureText(node->final()).empty() ? 2 : 0;
  };
  std::vector<const v1::DeploymentNode*> nodes;
  for (const v1::DeploymentNode& node : deployment.nodes()) nodes.push_back(&node);
  std::ranges::sort(nodes, {}, [&](const v1::DeploymentNode* node) {
    return std::pair(rank(node), std::string_view(node->node()));
  });
  return nodes;
}

// Returns "zip, sha256 0123456789ab", or the address and the commit.
std::string SourceText(const v1::Command::Source& source) {
  std::string text = source.kind();
  if (!source.url().empty()) {
    absl::StrAppend(&text, " ", Printable(source.url()), " at ", source.commit().substr(0, 12));
  }
  if (!source.folder().empty()) absl::StrAppend(&text, ", folder ", Printable(source.folder()));
  return absl::StrCat(text, ", sha256 ", source.sha256().substr(0, 12));
}

Json ToJson(const v1::Command::Source& source) {
  return {{"kind", source.kind()},
          {"sha256", source.sha256()},
          {"url", source.url()},
          {"commit", source.commit()},
          {"folder", source.folder()}};
}

Json ToJson(const v1::DeploymentBuild& build) {
  return {{"repository", build.repository()},
          {"source", ToJson(build.source())},
          {"image", build.image()}};
}

void AddContent(const v1::Deployment& deployment, Table* table) {
  if (!deployment.template_().empty()) table->AddRow({"template", deployment.template_()});
  table->AddRow({"type", deployment.type()});
  table->AddRow({"action", deployment.action()});
  table->AddRow({deployment.has_build() ? "base" : "image", deployment.image()});
  if (!deployment.has_build()) return;
  const v1::DeploymentBuild& build = deployment.build();
  table->AddRow({"repository", build.repository()});
  table->AddRow({"source", SourceText(build.source())});
  if (!build.image().empty()) table->AddRow({"image", build.image()});
}

void AddParameters(const v1::Deployment& deployment, Table* table) {
  for (const v1::DeploymentParameter& parameter : deployment.parameters()) {
    table->AddRow(
        {"parameter", absl::StrCat(parameter.name(), " = ",
                                   parameter.sensitive() ? "(sensitive)" : parameter.value(), "  (",
                                   parameter.source(), ")")});
  }
}

void AddSecrets(const v1::Deployment& deployment, Table* table) {
  for (const v1::Command::SecretReference& secret : deployment.secrets()) {
    table->AddRow({"secret", absl::StrCat(secret.name(), " = ", Printable(secret.secret()), "@",
                                          secret.version())});
  }
}

// Names the deployments that this one retries or destroys, and those that do so with it.
void AddRelated(const v1::Deployment& deployment, Table* table) {
  if (!deployment.retry_of().empty()) table->AddRow({"retry of", deployment.retry_of()});
  if (!deployment.destroys().empty()) table->AddRow({"destroys", deployment.destroys()});
  if (deployment.forced()) table->AddRow({"forced", "it may run a second time on some nodes"});
  if (deployment.skip_conformance()) table->AddRow({"conformance", "not checked"});
  for (const v1::RelatedDeployment& retry : deployment.retries()) {
    table->AddRow({"retried by", absl::StrCat(retry.deployment(), ": ", StateWord(retry.state()))});
  }
  for (const v1::RelatedDeployment& destruction : deployment.destroyed_by()) {
    const bool done = destruction.state() == v1::DEPLOYMENT_STATE_SUCCEEDED;
    table->AddRow({done ? "destroyed by" : "destruction",
                   absl::StrCat(destruction.deployment(), ": ", StateWord(destruction.state()))});
  }
}

void AddSubject(const v1::Deployment& deployment, Table* table) {
  const auto human = [](const google::protobuf::Timestamp& time) {
    return HumanTime(FromProto(time), absl::Now());
  };
  AddContent(deployment, table);
  table->AddRow({"state", StateWord(deployment.state())});
  if (!deployment.problem().empty()) table->AddRow({"problem", deployment.problem()});
  table->AddRow({"created", absl::StrCat(human(deployment.create_time()), " by ",
                                         ShortName(deployment.created_by()))});
  if (!deployment.cancel_requested_by().empty()) {
    table->AddRow({"cancelled", absl::StrCat("by ", ShortName(deployment.cancel_requested_by()))});
  }
  if (deployment.has_end_time()) table->AddRow({"ended", human(deployment.end_time())});
  if (deployment.has_late_time()) {
    table->AddRow({"late", absl::StrCat(human(deployment.late_time()),
                                        ", the outcome of a node that had been given up")});
  }
  table->AddRow({"job", deployment.job()});
  AddRelated(deployment, table);
  AddParameters(deployment, table);
  AddSecrets(deployment, table);
  AddWorkspaceOf(deployment, table);
}

void AddFiles(const v1::Deployment& deployment, Table* table) {
  for (int i = 0; i < std::min(deployment.files_size(), kFilesShown); ++i) {
    const v1::DeploymentFile& file = deployment.files(i);
    table->AddRow({"file", absl::StrCat(Printable(file.path()), "  ", HumanSize(file.size()),
                                        "  sha256 ", ToHex(file.sha256()).substr(0, 12))});
  }
  if (deployment.files_size() <= kFilesShown) return;
  table->AddRow(
      {"", absl::StrCat("and ", deployment.files_size() - kFilesShown, " more files: --json")});
}

void AddNodes(const v1::Deployment& deployment, Table* table) {
  int shown = 0;
  for (const v1::DeploymentNode* node : FailedFirst(deployment)) {
    if (++shown > kNodesShown) continue;
    table->AddRow({"node", absl::StrCat(node->node(), ": ", Outcome(deployment, *node))});
    for (const auto& output : node->outputs().outputs()) {
      table->AddRow(
          {"output", absl::StrCat(node->node(), ": ", output.name(), " = ",
                                  output.value().empty() ? "(sensitive)" : output.value())});
    }
  }
  if (shown > kNodesShown) {
    table->AddRow({"", absl::StrCat("and ", shown - kNodesShown, " more nodes: --json")});
  }
}

// Returns "n1, n2 and 3 more" of `count` nodes, of which the first are given.
std::string FirstNames(const google::protobuf::RepeatedPtrField<std::string>& names,
                       int64_t count) {
  const int shown = std::min(names.size(), kNamesShown);
  const std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  return count > shown ? absl::StrCat(text, " and ", count - shown, " more") : text;
}

std::string WithoutRecordText(const v1::Deployment& deployment) {
  const int64_t count = WithoutRecord(deployment);
  const std::string nodes = absl::StrCat(count, " of ", deployment.targets(),
                                         deployment.targets() == 1 ? " node" : " nodes");
  const std::string names =
      deployment.silent_nodes().empty()
          ? ""
          : absl::StrCat(": ", Printable(FirstNames(deployment.silent_nodes(), count)));
  if (HasEnded(deployment)) return absl::StrCat("no record of ", nodes, names);
  return absl::StrCat("nothing received yet from ", nodes, names);
}

Json FilesJson(const google::protobuf::RepeatedPtrField<v1::DeploymentFile>& files) {
  Json json = Json::array();
  for (const v1::DeploymentFile& file : files) json.push_back(cli::ToJson(file));
  return json;
}

}  // namespace

Json ToJson(const v1::DeploymentFile& file) {
  return {{"path", file.path()},
          {"size", file.size()},
          {"sha256", ToHex(file.sha256())},
          {"executable", file.executable()}};
}

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
               {"image", own.image()},
               {"source", own.has_source() ? ToJson(own.source()) : Json(nullptr)},
               {"document_sha256", own.document_sha256()},
               {"created_by", own.created_by()},
               {"create_time", Rfc3339(FromProto(own.create_time()))}};
  if (!own.document().empty()) json["document"] = ParsedOrNull(own.document());
  if (!own.files().empty()) json["files"] = FilesJson(own.files());
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
  Json secrets = Json::array();
  for (const v1::Command::SecretReference& secret : deployment.secrets()) {
    secrets.push_back(
        {{"name", secret.name()}, {"secret", secret.secret()}, {"version", secret.version()}});
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
          {"cancel_requested_by", deployment.cancel_requested_by()},
          {"create_time", Rfc3339(FromProto(deployment.create_time()))},
          {"end_time", TimeOrEmpty(deployment.has_end_time(), deployment.end_time())},
          {"late_time", TimeOrEmpty(deployment.has_late_time(), deployment.late_time())},
          {"never_sent", deployment.never_sent()},
          {"retry_of", deployment.retry_of()},
          {"destroys", deployment.destroys()},
          {"forced", deployment.forced()},
          {"build", deployment.has_build() ? ToJson(deployment.build()) : Json(nullptr)},
          {"skip_conformance", deployment.skip_conformance()},
          {"retries", ToJson(deployment.retries())},
          {"destroyed_by", ToJson(deployment.destroyed_by())},
          {"targets", deployment.targets()},
          {"succeeded", deployment.succeeded()},
          {"silent_nodes", std::vector<std::string>(deployment.silent_nodes().begin(),
                                                    deployment.silent_nodes().end())},
          {"parameters", parameters},
          {"files", FilesJson(deployment.files())},
          {"secrets", secrets},
          {"workspace", WorkspaceOfJson(deployment)},
          {"workspace_deletion", WorkspaceDeletionJson(deployment)},
          {"nodes", nodes}};
}

Json ListedJson(const v1::Deployment& deployment) {
  Json json = ToJson(deployment);
  for (const char* field : {"parameters", "files", "secrets", "nodes", "silent_nodes", "retries",
                            "destroyed_by", "workspace_deletion"}) {
    json.erase(field);
  }
  return json;
}

std::string SubjectOf(const v1::Deployment& deployment) {
  return deployment.template_().empty() ? deployment.type() : deployment.template_();
}

std::string SuccessorTable(const v1::Deployment& content, const std::string& signed_by,
                           const v1::DeploymentPlan& plan, int width) {
  const bool retries = !content.retry_of().empty();
  Table table(
      {{retries ? "RETRY OF" : "DESTROYS"}, {retries ? content.retry_of() : content.destroys()}});
  AddContent(content, &table);
  table.AddRow({"signed by", ShortName(signed_by)});
  AddParameters(content, &table);
  AddSecrets(content, &table);
  AddWorkspaceOf(content, &table);
  AddFiles(content, &table);
  table.AddRow({"nodes", FirstNames(plan.nodes(), plan.nodes_size())});
  for (const v1::SkippedNodes& skipped : plan.skipped()) {
    table.AddRow({"left out", absl::StrCat(FirstNames(skipped.nodes(), skipped.count()), ": ",
                                           skipped.reason())});
  }
  return table.Render(width);
}

int64_t WithoutRecord(const v1::Deployment& deployment) {
  return std::max<int64_t>(deployment.targets() - deployment.nodes_size(), 0);
}

std::string DeploymentTable(const v1::Deployment& deployment,
                            const std::vector<std::string>& waiting, int width) {
  Table table({{"DEPLOYMENT"}, {deployment.deployment()}});
  AddSubject(deployment, &table);
  AddFiles(deployment, &table);
  AddNodes(deployment, &table);
  if (WithoutRecord(deployment) > 0) table.AddRow({"waiting", WithoutRecordText(deployment)});
  for (const std::string& why : waiting) table.AddRow({"", why});
  NextSteps steps;
  for (const v1::DeploymentNode& node : deployment.nodes()) {
    if (node.has_final()) steps.Add(node.node(), node.final(), /*in_container=*/true);
  }
  for (const std::string& step : steps.Texts(deployment.job(), deployment.deployment())) {
    table.AddRow({"next", step});
  }
  return table.Render(width);
}

}  // namespace muster::cli
