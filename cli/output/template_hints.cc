#include "cli/output/template_hints.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/shell_quote.h"
#include "services/common/base/suggestion.h"
#include "services/common/templates/documents.h"
#include "services/common/templates/parameters.h"
#include "services/common/templates/secrets.h"

namespace muster::cli {
namespace {

std::string Version(const auto& document) {
  return absl::StrCat(document.name, "@", document.version);
}

// Returns the options that a deployment needs: the node, and what the documents require.
std::string RequiredOptions(const MergedParameters& parameters,
                            const std::vector<SecretDeclaration>& secrets) {
  std::string options = " --node NODE";
  for (const auto& [name, parameter] : parameters) {
    if (!parameter.required || parameter.value) continue;
    // A value in the arguments would be visible to other users of the machine.
    absl::StrAppend(&options, parameter.sensitive ? " --set-file " : " --set ", name,
                    parameter.sensitive ? "=FILE" : "=VALUE");
  }
  std::set<std::string> named;  // a template may require a secret of its type
  for (const SecretDeclaration& secret : secrets) {
    if (!secret.required || !named.insert(secret.name).second) continue;
    absl::StrAppend(&options, " --secret ", secret.name, "=SECRET");
  }
  return options + " --wait";
}

std::string DeployLine(const TypeDocument& type, const TemplateDocument& own) {
  std::vector<std::string> mistakes;
  std::vector<SecretDeclaration> secrets = type.secrets;
  secrets.insert(secrets.end(), own.secrets.begin(), own.secrets.end());
  return absl::StrCat(
      "Deploy it: muster deploy ", Version(own), type.ad_hoc ? " --files FOLDER" : "",
      RequiredOptions(MergeParameters(type.parameters, own.parameters, &mistakes), secrets));
}

std::string BuildLine(std::string_view what, const std::string& file) {
  std::string command;
  AppendShellWord(&command, file);
  return absl::StrCat(std::string(what), ": muster template build -f ", command,
                      " --from SOURCE --node NODE --repository REPOSITORY --wait");
}

}  // namespace

std::string TypeHint(const std::string& type_document) {
  const auto type = ReadType(type_document);
  if (!type.ok()) return "";
  const std::string version = Version(*type);
  if (!type->build_folder.empty()) {
    return BuildLine(absl::StrCat("Build a template with `type: ", version, "` in its document"),
                     "TEMPLATE.yaml");
  }
  std::vector<std::string> mistakes;
  return absl::StrCat(
      "Deploy it: muster deploy ", type->ad_hoc ? "FOLDER " : "", "--type ", version,
      RequiredOptions(MergeParameters(type->parameters, {}, &mistakes), type->secrets));
}

std::string DeployHint(const std::string& type_document, const std::string& template_document) {
  const auto type = ReadType(type_document);
  const auto own = ReadTemplate(template_document);
  return type.ok() && own.ok() ? DeployLine(*type, *own) : "";
}

std::string TemplateHint(const std::string& type_document, const std::string& template_document,
                         const std::string& file) {
  const auto type = ReadType(type_document);
  const auto own = ReadTemplate(template_document);
  if (!type.ok() || !own.ok()) return "";
  const std::string deploy = DeployLine(*type, *own);
  if (type->build_folder.empty()) return deploy;
  return absl::StrCat(
      "It has no files: it runs the image of ", own->type, " as it is.\n",
      BuildLine("To build it with files, write another version into the document", file), "\n",
      deploy);
}

std::string AddedParameters(const std::string& type_document,
                            const std::string& template_document) {
  const auto type = ReadType(type_document);
  const auto own = ReadTemplate(template_document);
  if (!type.ok() || !own.ok()) return "";
  std::vector<std::string> known;
  for (const Parameter& parameter : type->parameters) known.push_back(parameter.name);
  std::string text;
  for (const Parameter& parameter : own->parameters) {
    if (std::ranges::find(known, parameter.name) != known.end()) continue;
    const std::string suggestion = Suggestion(parameter.name, known);
    absl::StrAppend(&text, text.empty() ? "" : "\n", "It adds the parameter ", parameter.name,
                    " to those of ", own->type, suggestion.empty() ? "." : suggestion);
  }
  return text;
}

}  // namespace muster::cli
