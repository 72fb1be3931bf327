#include "cli/commands/template_pull_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/bundles/bundle_content.h"
#include "cli/bundles/bundle_index.h"
#include "cli/bundles/bundle_writer.h"
#include "cli/bundles/image_copier.h"
#include "cli/commands/registry_options.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/output_file.h"
#include "cli/output/progress_bar.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "cli/temporary_folder.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/image_reference.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/unique_fd.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kPage = 1'000;

struct PullArguments {
  std::vector<std::string> templates;
  std::vector<std::string> types;
  bool all = false;
  std::string bundle;
  std::string output;
  RegistryArguments registry;
};

// The documents to pull, by version.
struct Documents {
  std::map<std::string, BundleDocument> types;
  std::map<std::string, BundleDocument> templates;
};

class Puller {
 public:
  Puller(Console& console, const PullArguments& arguments, DeploymentClient& client)
      : console_(console), arguments_(arguments), client_(client) {}

  absl::Status ReadDocuments() {
    for (const std::string& reference : arguments_.types) RETURN_IF_ERROR(AddType(reference));
    for (const std::string& reference : arguments_.templates) {
      RETURN_IF_ERROR(AddTemplate(reference));
    }
    if (!arguments_.all) return absl::OkStatus();
    RETURN_IF_ERROR(AddAll<v1::ListTemplateTypesRequest>(
        [&](const auto& request) { return client_.ListTypes(request); },
        [](const auto& page) { return page.types(); },
        [&](const std::string& version) { return AddType(version); }));
    return AddAll<v1::ListTemplatesRequest>(
        [&](const auto& request) { return client_.ListTemplates(request); },
        [](const auto& page) { return page.templates(); },
        [&](const std::string& version) { return AddTemplate(version); });
  }

  const Documents& documents() const { return documents_; }
  const std::map<std::string, BundleImage>& images() const { return images_; }
  int64_t bytes() const { return bytes_; }

  // Writes the bundle beside its file, and renames it.
  absl::Status WriteBundleFile() {
    RETURN_IF_ERROR(CheckOutputFile(arguments_.bundle));
    std::string folder = fs::path(arguments_.bundle).parent_path().string();
    if (folder.empty()) folder = ".";
    const TemporaryFolder work(folder);
    if (work.path().empty()) {
      std::error_code fault;
      if (!fs::is_directory(folder, fault)) return errors::OutputFolderMissing(folder);
      return ErrnoError(EACCES, "create a folder in", folder);
    }
    RETURN_IF_ERROR(PullImages(work.path()));
    RETURN_IF_ERROR(WriteDocuments(work.path()));
    RETURN_IF_ERROR(WriteLayout(work.path(), images_));
    ASSIGN_OR_RETURN(const auto members, MembersOf(work.path()));
    // A bundle that `push` refuses would be of no use.
    RETURN_IF_ERROR(ParseBundleIndex(BundleIndexText(members), arguments_.bundle).status());
    RETURN_IF_ERROR(ReadBundleContent(work.path(), members, arguments_.bundle).status());
    const std::string file = work.path() + "/bundle.tar";
    for (const BundleMember& member : members) bytes_ += member.size;
    {
      ProgressBar bar(console_, "bundle", 0, bytes_);
      RETURN_IF_ERROR(WriteBundle(work.path(), members, file, [&](int64_t bytes) {
        bar.Update(bytes);
        return Interrupted() ? absl::CancelledError("interrupted") : absl::OkStatus();
      }));
    }
    if (rename(file.c_str(), arguments_.bundle.c_str()) != 0) {
      return ErrnoError(errno, "create", arguments_.bundle);
    }
    const UniqueFd parent(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent.valid() || fsync(parent.get()) != 0) return ErrnoError(errno, "sync", folder);
    return absl::OkStatus();
  }

 private:
  template <typename Request, typename List, typename Items, typename Add>
  absl::Status AddAll(const List& list, const Items& items, const Add& add) {
    Request request;
    request.set_page_size(kPage);
    do {
      ASSIGN_OR_RETURN(const auto page, list(request));
      request.set_page_token(page.next_page_token());
      for (const auto& document : items(page)) {
        RETURN_IF_ERROR(add(absl::StrCat(document.name(), "@", document.version())));
      }
    } while (!request.page_token().empty());
    return absl::OkStatus();
  }

  absl::Status AddType(const std::string& reference) {
    if (documents_.types.contains(reference)) return absl::OkStatus();
    if (Interrupted()) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(const auto type, client_.GetType(reference));
    const std::string version = absl::StrCat(type.name(), "@", type.version());
    RETURN_IF_ERROR(CheckVersion(version));
    RETURN_IF_ERROR(AddImage(absl::StrCat("the template type ", version), type.image()));
    documents_.types[version] = {version, type.document(), type.image(), ""};
    return absl::OkStatus();
  }

  absl::Status AddTemplate(const std::string& reference) {
    if (documents_.templates.contains(reference)) return absl::OkStatus();
    if (Interrupted()) return absl::CancelledError("interrupted");
    ASSIGN_OR_RETURN(const auto own, client_.GetTemplate(reference));
    const std::string version = absl::StrCat(own.name(), "@", own.version());
    RETURN_IF_ERROR(CheckVersion(version));
    RETURN_IF_ERROR(AddType(own.type()));
    if (!own.image().empty()) {
      RETURN_IF_ERROR(AddImage(absl::StrCat("the template ", version), own.image()));
    }
    documents_.templates[version] = {version, own.document(), own.image(), own.type()};
    return absl::OkStatus();
  }

  // It becomes the name of a file.
  absl::Status CheckVersion(const std::string& version) const {
    if (IsDocumentVersion(version)) return absl::OkStatus();
    return errors::BundleUnusable(arguments_.bundle,
                                  absl::StrCat("the jobs service returned \"", Printable(version),
                                               "\", which is no NAME@VERSION"));
  }

  absl::Status AddImage(const std::string& version, const std::string& image) {
    if (!IsImageByContent(image) || DigestOf(image).empty()) {
      return errors::ImageNotInRegistry(version, Printable(image));
    }
    images_.try_emplace(image);
    return absl::OkStatus();
  }

  absl::Status PullImages(const std::string& folder) {
    const std::string blobs = absl::StrCat(folder, "/", kBundleBlobs);
    std::error_code fault;
    fs::create_directories(blobs, fault);
    if (fault) return ErrnoError(fault.value(), "create", blobs);
    ImageCopier copier(arguments_.registry.options, Interrupted);
    int64_t total = 0;
    for (auto& [image, content] : images_) {
      const std::string name = CopiedName(arguments_.registry, image);
      const std::string repository = name.substr(0, name.find('@'));
      ASSIGN_OR_RETURN(
          content,
          ReadImage(std::string(DigestOf(image).substr(7)), [&](const std::string& sha256) {
            return copier.ReadManifestOf(absl::StrCat(repository, "@sha256:", sha256));
          }));
      total += content.size();
    }
    ProgressBar bar(console_, "images", 0, total);
    int64_t before = 0;
    for (const auto& [image, content] : images_) {
      RETURN_IF_ERROR(copier.Pull(CopiedName(arguments_.registry, image), content.size(),
                                  fs::path(blobs).parent_path().string(),
                                  [&](int64_t bytes) { bar.Update(before + bytes); }));
      before += content.size();
      bar.Update(before);
    }
    return absl::OkStatus();
  }

  absl::Status WriteDocuments(const std::string& folder) {
    const auto write = [&](const char* kind, const auto& documents) -> absl::Status {
      std::error_code fault;
      fs::create_directories(absl::StrCat(folder, "/", kind), fault);
      if (fault) return ErrnoError(fault.value(), "create", kind);
      for (const auto& [version, document] : documents) {
        RETURN_IF_ERROR(
            WriteFileAtomically(absl::StrCat(folder, "/", kind, version, ".json"), document.text));
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(write(kTypeFolder, documents_.types));
    return write(kTemplateFolder, documents_.templates);
  }

  absl::StatusOr<std::vector<BundleMember>> MembersOf(const std::string& folder) const {
    std::map<std::string, BundleMember> members;
    const auto add_text = [&](const std::string& path) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string text,
                       ReadFileBounded(absl::StrCat(folder, "/", path), kMaxIndex));
      members[path] = {path, static_cast<int64_t>(text.size()), ToHex(Sha256::Of(text))};
      return absl::OkStatus();
    };
    for (const auto& [version, document] : documents_.types) {
      RETURN_IF_ERROR(add_text(absl::StrCat(kTypeFolder, version, ".json")));
    }
    for (const auto& [version, document] : documents_.templates) {
      RETURN_IF_ERROR(add_text(absl::StrCat(kTemplateFolder, version, ".json")));
    }
    RETURN_IF_ERROR(add_text(kLayoutIndexPath));
    RETURN_IF_ERROR(add_text(kLayoutPath));
    for (const auto& [name, image] : images_) {
      for (const auto& [sha256, size] : image.blobs) {
        const std::string path = absl::StrCat(kBundleBlobs, sha256);
        members[path] = {path, size, sha256};
      }
      RETURN_IF_ERROR(add_text(absl::StrCat(kBundleBlobs, ToAbsl(DigestOf(name).substr(7)))));
      for (const std::string& sha256 : image.manifests) {
        RETURN_IF_ERROR(add_text(absl::StrCat(kBundleBlobs, sha256)));
      }
    }
    std::vector<BundleMember> sorted;
    for (auto& [path, member] : members) sorted.push_back(std::move(member));
    return sorted;
  }

  Console& console_;
  const PullArguments& arguments_;
  DeploymentClient& client_;
  Documents documents_;
  std::map<std::string, BundleImage> images_;  // by the names in the documents
  int64_t bytes_ = 0;
};

Json VersionsOf(const std::map<std::string, BundleDocument>& documents) {
  Json json = Json::array();
  for (const auto& [version, document] : documents) json.push_back(version);
  return json;
}

// Returns "1 type" or "2 types".
template <typename Items>
std::string CountOf(const Items& items, const char* noun) {
  return absl::StrCat(items.size(), " ", noun, items.size() == 1 ? "" : "s");
}

absl::Status Check(const PullArguments& arguments) {
  const bool named = !arguments.templates.empty() || !arguments.types.empty();
  if (named == arguments.all) {
    return UsageError(named ? "--all is for every version" : "give a template, --type, or --all",
                      "See the example in `muster template pull --help`.");
  }
  if (arguments.bundle.empty() == arguments.output.empty()) {
    return UsageError("exactly one of --bundle and --output is required",
                      "Use --bundle for a site without a network, --output for one document.");
  }
  if (!arguments.output.empty() &&
      (arguments.all || arguments.templates.size() + arguments.types.size() != 1)) {
    return UsageError("--output is for one document", "Name one template, or one --type.");
  }
  return CheckRegistry(arguments.registry);
}

absl::StatusOr<int> WriteDocument(Console& console, const CommandLine& line,
                                  const PullArguments& arguments, DeploymentClient& client) {
  RETURN_IF_ERROR(CheckOutputFile(arguments.output));
  std::string document;
  std::string version;
  if (arguments.types.empty()) {
    ASSIGN_OR_RETURN(const auto own, client.GetTemplate(arguments.templates.front()));
    document = own.document();
    version = absl::StrCat(own.name(), "@", own.version());
  } else {
    ASSIGN_OR_RETURN(const auto type, client.GetType(arguments.types.front()));
    document = type.document();
    version = absl::StrCat(type.name(), "@", type.version());
  }
  RETURN_IF_ERROR(WriteFileAtomically(arguments.output, document, 0644));
  if (line.json) {
    console.out << Dump({{"version", version}, {"file", arguments.output}});
  }
  PrintMessage(console,
               absl::StrCat("The document of ", version, " is in ", arguments.output, "."));
  return kExitOk;
}

absl::StatusOr<int> Pull(Console& console, const CommandLine& line,
                         const PullArguments& arguments) {
  RETURN_IF_ERROR(Check(arguments));
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  ASSIGN_OR_RETURN(const auto client, DeploymentClient::Open(context));
  if (!arguments.output.empty()) return WriteDocument(console, line, arguments, *client);
  Puller puller(console, arguments, *client);
  absl::Status status = puller.ReadDocuments();
  if (status.ok()) status = puller.WriteBundleFile();
  if (!status.ok() && Interrupted()) {
    PrintMessage(console, "\nInterrupted: no file was written.");
    return kExitInterrupted;
  }
  RETURN_IF_ERROR(status);
  const Documents& documents = puller.documents();
  if (line.json) {
    Json images = Json::array();
    for (const auto& [name, image] : puller.images()) images.push_back(name);
    console.out << Dump({{"bundle", arguments.bundle},
                         {"bytes", puller.bytes()},
                         {"types", VersionsOf(documents.types)},
                         {"templates", VersionsOf(documents.templates)},
                         {"images", std::move(images)}});
  }
  PrintMessage(console,
               absl::StrCat(arguments.bundle, " has ", CountOf(documents.types, "type"), ", ",
                            CountOf(documents.templates, "template"), " and ",
                            CountOf(puller.images(), "image"), " (", HumanSize(puller.bytes()),
                            ").\nAt the site: muster template push --bundle ", arguments.bundle));
  return kExitOk;
}

}  // namespace

void AddTemplatePullCommand(CommandLine& line, CLI::App& templates) {
  CLI::App& command = AddCommand(
      templates,
      {.name = "pull",
       .summary = "Write templates with their types and images to a file",
       .details =
           "With --bundle the file has the documents and all platforms of the images, for a site "
           "without a network: `muster template push` stores them there. It needs the program "
           "skopeo, and free space of twice the size of the images in the folder of the file.\n"
           "With --output the file has one document, as it is stored.",
       .example = "muster template pull web@1.4 --type conformance --bundle site.tar\n"
                  "muster template pull --all --bundle site.tar\n"
                  "muster template pull web@1.4 -o web.json"});
  const auto arguments = std::make_shared<PullArguments>();
  command
      .add_option("TEMPLATE", arguments->templates,
                  "Templates as NAME@VERSION; NAME@1.2 is the newest release 1.2.x, and NAME the "
                  "newest release. The type of each is written too")
      ->type_name("");
  command.add_option("--type", arguments->types, "A template type: its version, as for a template")
      ->type_name("TYPE");
  command.add_flag("--all", arguments->all, "All versions of all types and templates");
  command.add_option("--bundle", arguments->bundle, "The file, which is replaced if it exists")
      ->type_name(kFileValue);
  command.add_option("-o,--output", arguments->output, "The file of one document")
      ->type_name(kFileValue);
  AddRegistryOptions(command,
                     "Read the images from this registry instead of those that the documents name",
                     arguments->registry);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command,
            [&line, arguments](Console& console) { return Pull(console, line, *arguments); });
}

}  // namespace muster::cli
