#include "cli/commands/template_commands.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/file_argument.h"
#include "cli/commands/template_build_command.h"
#include "cli/commands/template_pull_command.h"
#include "cli/commands/template_push_command.h"
#include "cli/exit_code.h"
#include "cli/output/deployment_view.h"
#include "cli/output/document_diff.h"
#include "cli/output/format.h"
#include "cli/output/job_view.h"
#include "cli/output/table.h"
#include "cli/output/template_hints.h"
#include "cli/rpc/deployment_client.h"
#include "cli/rpc/session.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxDocumentFile = size_t{1} << 20;
constexpr int kPage = 1'000;
constexpr char kDiffDetails[] =
    "Prints a line for each value that only one document has, or that differs: its place, and the "
    "value in the OLD document after \"-\", in the NEW one after \"+\".";
constexpr char kTemplateDiffDetails[] =
    "Prints a line for each value of the document, and for each file of a built version, that only "
    "one version has, or that differs: its place, and the value in the OLD version after \"-\", in "
    "the NEW one after \"+\".";

struct DocumentArguments {
  std::string file;
  std::string file_option;  // with --file
  std::string reference;
  std::string other;  // of diff
  std::string name;
};

using Handler = absl::StatusOr<int> (*)(Console&, const CommandLine&, const DocumentArguments&);

absl::StatusOr<std::string> FileOf(const DocumentArguments& arguments) {
  if (arguments.file.empty() == arguments.file_option.empty()) {
    return UsageError(arguments.file.empty() ? "FILE is required" : "FILE is given twice",
                      "Name the file of the document, as FILE or with --file.");
  }
  return arguments.file.empty() ? arguments.file_option : arguments.file;
}

absl::StatusOr<std::unique_ptr<DeploymentClient>> OpenClient(const CommandLine& line) {
  ASSIGN_OR_RETURN(const auto context, ReadCheckedContext(line.context_file));
  return DeploymentClient::Open(context);
}

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return HumanTime(FromProto(time), absl::Now());
}

std::string Version(const auto& document) {
  return absl::StrCat(document.name(), "@", document.version());
}

std::string OnNextLine(const std::string& text) { return text.empty() ? "" : "\n" + text; }

// The two kinds of documents: their calls, and their words. `Stored` tells that a new version is
// stored, and what to do next.
struct TypeKind {
  static auto Create(DeploymentClient& client, const std::string& text) {
    return client.CreateType(text);
  }
  static auto Get(DeploymentClient& client, const std::string& reference) {
    return client.GetType(reference);
  }
  using ListRequest = v1::ListTemplateTypesRequest;
  static auto List(DeploymentClient& client, const ListRequest& request) {
    return client.ListTypes(request);
  }
  static const auto& Items(const v1::ListTemplateTypesResponse& page) { return page.types(); }
  static Table EmptyTable() { return Table({{"TYPE"}, {"CREATED"}, {"BY"}, {"DESCRIPTION"}}); }
  static std::vector<std::string> Row(const v1::TemplateType& type) {
    return {Version(type), FormatTime(type.create_time()), ShortName(type.created_by()),
            type.description()};
  }
  static constexpr char kNone[] = "There are no template types. Store one: muster type push FILE";
  static std::string Stored(DeploymentClient&, const v1::TemplateType& type, const std::string&) {
    return absl::StrCat("Template type ", Version(type), " is stored.",
                        OnNextLine(TypeHint(type.document())));
  }
  static void AddFileChanges(Console&, const v1::TemplateType&, const v1::TemplateType&,
                             std::vector<DocumentChange>*) {}
};

struct TemplateKind {
  static auto Create(DeploymentClient& client, const std::string& text) {
    return client.CreateTemplate(text);
  }
  static auto Get(DeploymentClient& client, const std::string& reference) {
    return client.GetTemplate(reference);
  }
  using ListRequest = v1::ListTemplatesRequest;
  static auto List(DeploymentClient& client, const ListRequest& request) {
    return client.ListTemplates(request);
  }
  static const auto& Items(const v1::ListTemplatesResponse& page) { return page.templates(); }
  static Table EmptyTable() {
    return Table({{"TEMPLATE"}, {"TYPE"}, {"CREATED"}, {"BY"}, {"DESCRIPTION"}});
  }
  static std::vector<std::string> Row(const v1::Template& own) {
    return {Version(own), own.type(), FormatTime(own.create_time()), ShortName(own.created_by()),
            own.description()};
  }
  static constexpr char kNone[] =
      "There are no templates. Store one: muster template create -f FILE";
  static std::string Stored(DeploymentClient& client, const v1::Template& own,
                            const std::string& file) {
    const std::string text =
        absl::StrCat("Template ", Version(own), " of type ", own.type(), " is stored.");
    // The version is stored: a lack of hints is no error.
    const auto type = client.GetType(own.type());
    if (!type.ok()) return text;
    return absl::StrCat(text, OnNextLine(AddedParameters(type->document(), own.document())),
                        OnNextLine(TemplateHint(type->document(), own.document(), file)));
  }
  // Files are compared only if those of both versions are known.
  static void AddFileChanges(Console& console, const v1::Template& before,
                             const v1::Template& after, std::vector<DocumentChange>* changes) {
    for (const v1::Template* own : {&before, &after}) {
      if (own->image().empty() || !own->files().empty()) continue;
      PrintMessage(console,
                   absl::StrCat("The files of ", Version(*own),
                                " are not known here, and not compared: it was built in another "
                                "fleet, or by an earlier Muster."));
      return;
    }
    const auto files = CompareFiles(before.files(), after.files());
    changes->insert(changes->end(), files.begin(), files.end());
  }
};

// Returns a document for people: JSON with a line for each value.
std::string Indented(const std::string& document) {
  const auto [json, fault] = ParseExactJson<Json>(document);
  return fault == JsonFault::kNone ? ExactJsonText(json, 2) : document;
}

template <typename Kind>
absl::StatusOr<int> Create(Console& console, const CommandLine& line,
                           const DocumentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto file, FileOf(arguments));
  ASSIGN_OR_RETURN(const auto text, ReadFileArgument(file, kMaxDocumentFile));
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  const auto document = Kind::Create(*client, text);
  if (!document.ok()) return WithFile(document.status(), file);
  if (line.json) console.out << Dump(ToJson(*document));
  PrintMessage(console, Kind::Stored(*client, *document, file));
  return kExitOk;
}

template <typename Kind>
absl::StatusOr<int> List(Console& console, const CommandLine& line,
                         const DocumentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  typename Kind::ListRequest request;
  request.set_page_size(kPage);
  request.set_name(arguments.name);
  Json json = Json::array();
  Table table = Kind::EmptyTable();
  do {
    ASSIGN_OR_RETURN(const auto page, Kind::List(*client, request));
    request.set_page_token(page.next_page_token());
    for (const auto& document : Kind::Items(page)) {
      if (line.json) json.push_back(ToJson(document));
      table.AddRow(Kind::Row(document));
    }
  } while (!request.page_token().empty());
  if (line.json) {
    console.out << Dump(json);
  } else if (table.empty()) {
    PrintMessage(console, arguments.name.empty()
                              ? Kind::kNone
                              : absl::StrCat("There is no version of ", arguments.name, "."));
  } else {
    console.out << table.Render(console.width);
  }
  return kExitOk;
}

template <typename Kind>
absl::StatusOr<int> Show(Console& console, const CommandLine& line,
                         const DocumentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto document, Kind::Get(*client, arguments.reference));
  console.out << (line.json ? Dump(ToJson(document)) : Indented(document.document()) + "\n");
  return kExitOk;
}

template <typename Kind>
absl::StatusOr<int> Diff(Console& console, const CommandLine& line,
                         const DocumentArguments& arguments) {
  ASSIGN_OR_RETURN(const auto client, OpenClient(line));
  ASSIGN_OR_RETURN(const auto before, Kind::Get(*client, arguments.reference));
  ASSIGN_OR_RETURN(const auto after, Kind::Get(*client, arguments.other));
  ASSIGN_OR_RETURN(auto changes, CompareDocuments(before.document(), after.document()));
  Kind::AddFileChanges(console, before, after, &changes);
  if (line.json) {
    console.out << Dump(ToJson(changes));
  } else if (changes.empty()) {
    PrintMessage(console, absl::StrCat(Version(before), " and ", Version(after), " are equal."));
  } else {
    console.out << "--- " << Version(before) << "\n+++ " << Version(after) << "\n"
                << DiffText(changes);
  }
  return kExitOk;
}

CLI::App& AddDocumentCommand(CommandLine& line, CLI::App& group, const CommandText& text,
                             const std::shared_ptr<DocumentArguments>& arguments, Handler handler) {
  CLI::App& command = AddCommand(group, text);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments, handler](Console& console) {
    return handler(console, line, *arguments);
  });
  return command;
}

void AddList(CommandLine& line, CLI::App& group, const CommandText& text,
             const std::shared_ptr<DocumentArguments>& arguments, Handler handler) {
  CLI::App& list = AddDocumentCommand(line, group, text, arguments, handler);
  list.add_option("--name", arguments->name, "Only the versions of this name")->type_name("NAME");
}

// Both commands accept the file in both forms.
void AddDocument(CLI::App& command, DocumentArguments& arguments) {
  command.add_option("FILE", arguments.file, "The document, in YAML or JSON; - for stdin")
      ->type_name("");
  command.add_option("-f,--file", arguments.file_option, "The same")->type_name(kFileValue);
}

void AddReference(CLI::App& command, const std::string& argument, std::string& reference) {
  command
      .add_option(
          argument, reference,
          "NAME@VERSION; NAME@1.2 is the newest release 1.2.x, and NAME the newest release; "
          "a pre-release needs its whole version")
      ->required()
      ->type_name("");
}

void AddShow(CommandLine& line, CLI::App& group, const CommandText& text,
             const std::string& argument, const std::shared_ptr<DocumentArguments>& arguments,
             Handler handler) {
  CLI::App& show = AddDocumentCommand(line, group, text, arguments, handler);
  AddReference(show, argument, arguments->reference);
}

void AddDiff(CommandLine& line, CLI::App& group, const CommandText& text,
             const std::shared_ptr<DocumentArguments>& arguments, Handler handler) {
  CLI::App& diff = AddDocumentCommand(line, group, text, arguments, handler);
  AddReference(diff, "OLD", arguments->reference);
  AddReference(diff, "NEW", arguments->other);
}

}  // namespace

void AddTemplateCommands(CommandLine& line) {
  const auto arguments = std::make_shared<DocumentArguments>();
  CLI::App& types = AddCommand(
      line.app, {.name = "type",
                 .summary = "Store, list, show and compare template types",
                 .details = "A template type is an image with a description of its parameters and "
                            "outputs. docs/templates.md describes the document.",
                 .example = "muster type push shell.yaml"});
  types.require_subcommand(1);
  CLI::App& push = AddDocumentCommand(
      line, types,
      {.name = "push",
       .summary = "Store a version of a template type",
       .details = "A version never changes: the same document again is a success, another document "
                  "with this version is refused.",
       .example = "muster type push shell.yaml"},
      arguments, Create<TypeKind>);
  AddDocument(push, *arguments);
  AddList(line, types,
          {.name = "list",
           .summary = "List the template types, the newest version first",
           .example = "muster type list"},
          arguments, List<TypeKind>);
  AddShow(line, types,
          {.name = "show",
           .summary = "Print the document of a template type",
           .example = "muster type show shell@1.0.0"},
          "TYPE", arguments, Show<TypeKind>);
  AddDiff(line, types,
          {.name = "diff",
           .summary = "Show the differences of two versions of a template type",
           .details = kDiffDetails,
           .example = "muster type diff shell@1.0.0 shell@1.1.0"},
          arguments, Diff<TypeKind>);

  CLI::App& templates =
      AddCommand(line.app, {.name = "template",
                            .summary = "Store, build, list, show, compare and copy templates",
                            .details = "A template narrows the parameters of a template type. "
                                       "docs/templates.md describes the document.",
                            .example = "muster template create -f web.yaml"});
  templates.require_subcommand(1);
  CLI::App& create = AddDocumentCommand(
      line, templates,
      {.name = "create",
       .summary = "Store a version of a template",
       .details = "A version never changes: the same document again is a success, another document "
                  "with this version is refused. The template may not widen what its type decides.",
       .example = "muster template create -f web.yaml"},
      arguments, Create<TemplateKind>);
  AddDocument(create, *arguments);
  AddTemplateBuildCommand(line, templates);
  AddList(line, templates,
          {.name = "list",
           .summary = "List the templates, the newest version first",
           .example = "muster template list"},
          arguments, List<TemplateKind>);
  AddShow(line, templates,
          {.name = "show",
           .summary = "Print the document of a template",
           .example = "muster template show web@1.4.0"},
          "TEMPLATE", arguments, Show<TemplateKind>);
  AddDiff(line, templates,
          {.name = "diff",
           .summary = "Show the differences of two versions of a template",
           .details = kTemplateDiffDetails,
           .example = "muster template diff web@1.3 web@1.4"},
          arguments, Diff<TemplateKind>);
  AddTemplatePullCommand(line, templates);
  AddTemplatePushCommand(line, templates);
}

}  // namespace muster::cli
