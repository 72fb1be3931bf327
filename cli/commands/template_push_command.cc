#include "cli/commands/template_push_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "cli/bundles/bundle_content.h"
#include "cli/bundles/bundle_reader.h"
#include "cli/bundles/image_copier.h"
#include "cli/commands/registry_options.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/json_view.h"
#include "cli/output/progress_bar.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "cli/temporary_folder.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

struct PushArguments {
  std::string bundle;
  RegistryArguments registry;
};

class Pusher {
 public:
  Pusher(Console& console, const PushArguments& arguments, DeploymentClient& client)
      : console_(console), arguments_(arguments), client_(client) {}

  absl::Status Push() {
    if (folder_.path().empty()) return ErrnoError(EACCES, "create a folder in", "TMPDIR");
    RETURN_IF_ERROR(Unpack());
    // A refusal comes before anything is pushed.
    ASSIGN_OR_RETURN(const auto new_types, MissingTypes());
    ASSIGN_OR_RETURN(const auto new_templates, MissingTemplates());
    RETURN_IF_ERROR(PushImages());
    for (const BundleDocument* type : new_types) {
      RETURN_IF_ERROR(StopIfInterrupted());
      RETURN_IF_ERROR(client_.CreateType(type->text).status());
    }
    for (const BundleDocument* own : new_templates) {
      RETURN_IF_ERROR(StopIfInterrupted());
      RETURN_IF_ERROR(client_.CreateTemplate(own->text, !own->image.empty()).status());
    }
    Note("types", content_.types, new_types);
    Note("templates", content_.templates, new_templates);
    if (!arguments_.registry.registry.empty()) {
      for (const auto& [name, image] : content_.images) {
        report_["mirrors"][RegistryOf(name)] = arguments_.registry.registry;
      }
    }
    return absl::OkStatus();
  }

  // Returns each image and version, and whether it was pushed; with --registry also the mirrors
  // that the nodes need.
  const Json& report() const { return report_; }

 private:
  static absl::Status StopIfInterrupted() {
    return Interrupted() ? absl::CancelledError("interrupted") : absl::OkStatus();
  }

  absl::Status Unpack() {
    int64_t total = 0;
    std::unique_ptr<ProgressBar> bar;
    ASSIGN_OR_RETURN(const auto members,
                     UnpackBundle(arguments_.bundle, folder_.path(), &total, [&](int64_t bytes) {
                       if (bar == nullptr) {
                         bar = std::make_unique<ProgressBar>(console_, "verify", 0, total);
                       }
                       bar->Update(bytes);
                       return StopIfInterrupted();
                     }));
    ASSIGN_OR_RETURN(content_, ReadBundleContent(folder_.path(), members, arguments_.bundle));
    return absl::OkStatus();
  }

  using Missing = std::vector<const BundleDocument*>;

  // `stored`: returns the document of a version. `kind`: of the documents, for people.
  static absl::StatusOr<Missing> FindMissing(
      const std::vector<BundleDocument>& documents, std::string_view kind,
      absl::FunctionRef<absl::StatusOr<std::string>(const std::string& version)> stored) {
    Missing missing;
    for (const BundleDocument& document : documents) {
      RETURN_IF_ERROR(StopIfInterrupted());
      const auto found = stored(document.version);
      if (absl::IsNotFound(found.status())) {
        missing.push_back(&document);
      } else if (!found.ok()) {
        return found.status();
      } else if (*found != document.text) {
        return errors::BundleVersionExists(kind, document.version);
      }
    }
    return missing;
  }

  absl::StatusOr<Missing> MissingTypes() {
    return FindMissing(content_.types, "template type",
                       [this](const std::string& version) -> absl::StatusOr<std::string> {
                         ASSIGN_OR_RETURN(const auto found, client_.GetType(version));
                         return found.document();
                       });
  }

  absl::StatusOr<Missing> MissingTemplates() {
    return FindMissing(content_.templates, "template",
                       [this](const std::string& version) -> absl::StatusOr<std::string> {
                         ASSIGN_OR_RETURN(const auto found, client_.GetTemplate(version));
                         return found.document();
                       });
  }

  absl::Status PushImages() {
    ImageCopier copier(arguments_.registry.options, Interrupted);
    int64_t total = 0;
    for (const auto& [name, image] : content_.images) total += image.size();
    ProgressBar bar(console_, "images", 0, total);
    int64_t done = 0;
    for (const auto& [name, image] : content_.images) {
      const std::string target = CopiedName(arguments_.registry, name);
      const bool exists = copier.ReadManifestOf(target).ok();
      RETURN_IF_ERROR(StopIfInterrupted());
      if (!exists) {
        RETURN_IF_ERROR(copier.Push(image, absl::StrCat(folder_.path(), "/blobs/sha256"), target));
      }
      report_["images"].push_back({{"image", name}, {"name", target}, {"pushed", !exists}});
      done += image.size();
      bar.Update(done);
    }
    return absl::OkStatus();
  }

  void Note(const char* kind, const std::vector<BundleDocument>& documents, const Missing& pushed) {
    for (const BundleDocument& document : documents) {
      const bool is_new = std::find(pushed.begin(), pushed.end(), &document) != pushed.end();
      report_[kind].push_back({{"version", document.version}, {"pushed", is_new}});
    }
  }

  Console& console_;
  const PushArguments& arguments_;
  DeploymentClient& client_;
  const TemporaryFolder folder_;
  BundleContent content_;
  Json report_ = {
      {"types", Json::array()}, {"templates", Json::array()}, {"images", Json::array()}};
};

// Returns a line for each item of a report.
std::string ReportText(const Json& report) {
  std::string text;
  const auto add = [&](const char* kind, const char* word, const char* field) {
    for (const Json& item : report[kind]) {
      absl::StrAppend(&text, word, " ", item[field].get<std::string>(),
                      item["pushed"].get<bool>() ? ": pushed\n" : ": exists, skipped\n");
    }
  };
  add("images", "image", "name");
  add("types", "type", "version");
  add("templates", "template", "version");
  return text;
}

absl::StatusOr<int> Push(Console& console, const CommandLine& line,
                         const PushArguments& arguments) {
  RETURN_IF_ERROR(CheckRegistry(arguments.registry));
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  Pusher pusher(console, arguments, *client);
  const absl::Status status = pusher.Push();
  if (!status.ok() && Interrupted()) {
    PrintMessage(console,
                 "\nInterrupted: some images and versions may be stored. Run the same command "
                 "again: it skips them.");
    return kExitInterrupted;
  }
  RETURN_IF_ERROR(status);
  if (line.json) {
    console.out << Dump(pusher.report());
    return kExitOk;
  }
  console.out << ReportText(pusher.report());
  if (pusher.report().contains("mirrors")) {
    PrintMessage(console, absl::StrCat("The nodes need this in registry.json of their folder:\n",
                                       Json({{"mirrors", pusher.report()["mirrors"]}}).dump()));
  }
  return kExitOk;
}

}  // namespace

void AddTemplatePushCommand(CommandLine& line, CLI::App& templates) {
  CLI::App& command = AddCommand(
      templates,
      {.name = "push",
       .summary = "Store the templates, types and images of a bundle",
       .details =
           "Verifies the whole file first, and refuses a version that is stored with another "
           "document. Then it pushes the images to their registry, and stores types and templates. "
           "What exists is skipped: after a failure, run the command again. It needs the program "
           "skopeo, and free space of the size of the bundle in TMPDIR.\n"
           "With --registry the documents keep the names of their images: the nodes find them by "
           "the mirrors in their registry.json, which the command prints.",
       .example = "muster template push --bundle site.tar\n"
                  "muster template push --bundle site.tar --registry registry.site:5000/outside"});
  const auto arguments = std::make_shared<PushArguments>();
  command.add_option("--bundle", arguments->bundle, "The file of `muster template pull`")
      ->required()
      ->type_name(kFileValue);
  AddRegistryOptions(command,
                     "Push the images to this registry instead of those that the documents name",
                     arguments->registry);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Push(console, line, *arguments); });
}

}  // namespace muster::cli
