#include "cli/commands/results_commands.h"

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/output/damage_view.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/progress_bar.h"
#include "cli/output/results_report.h"
#include "cli/output/run_view.h"
#include "cli/output/table.h"
#include "cli/rpc/download.h"
#include "cli/rpc/run_details.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "services/common/archive/archive_reader.h"
#include "services/common/archive/results_yaml.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"
#include "services/common/errors/results.h"
#include "services/common/identity/identity.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1000;

struct ResultsArguments {
  std::string run;
  std::string plugin;
  std::string node;
  std::string mode;
  std::string output;
};

class OutputSink : public ByteSink {
 public:
  explicit OutputSink(Console& console) : console_(console) {}

  absl::Status Write(std::string_view data) override {
    console_.out.write(data.data(), static_cast<std::streamsize>(data.size()));
    return console_.out.good() ? absl::OkStatus() : FinishOutput(console_);
  }

 private:
  Console& console_;
};

std::string Detail(const v1::Result& result) {
  if (!result.redelivery().empty()) {
    return absl::StrCat("damaged: ", result.damage(), "; redelivery: ", result.redelivery());
  }
  if (!result.damage().empty()) return absl::StrCat("damaged: ", result.damage());
  if (!result.error().empty()) return JoinLines(result.error());
  return result.delivery().node_unproven() ? absl::StrCat(result.file_name(), " (node unproven)")
                                           : result.file_name();
}

// Lists the pairs of a run without an archive, page by page.
absl::StatusOr<int> ListPairs(Console& console, Client& client, const v1::Run& run,
                              const ResultsArguments& arguments, bool json) {
  v1::ListResultsRequest request;
  request.set_run(run.id());
  request.set_plugin(arguments.plugin);
  request.set_node(arguments.node);
  request.set_page_size(kPage);
  using Align = Table::Align;
  Table table({{"PLUGIN"}, {"NODE"}, {"OUTCOME"}, {"SIZE", Align::kRight}, {"AT"}, {"DETAIL"}});
  Json list = Json::array();
  do {
    ASSIGN_OR_RETURN(const auto page, client.ListResults(request));
    for (const v1::Result& result : page.results()) {
      if (json) {
        list.push_back(ToJson(result, run.state()));
        continue;
      }
      const bool pending = result.outcome() == v1::OUTCOME_PENDING;
      table.AddRow({result.key().plugin(), result.key().node(),
                    absl::StrReplaceAll(OutcomeWord(result.outcome(), run.state()), {{"-", " "}}),
                    pending ? "-" : HumanSize(result.size()),
                    HumanTime(FromProto(result.commit_time()), absl::Now()), Detail(result)});
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  console.out
      << (json ? Dump({{"run", run.id()}, {"state", StateWord(run.state())}, {"results", list}})
               : table.Render(console.width));
  return kExitOk;
}

// Prints the tree of each plugin in the requested mode.
class TreePrinter {
 public:
  TreePrinter(Console& console, const ResultsArguments& arguments, bool json)
      : console_(console), arguments_(arguments), json_(json) {}

  absl::Status Print(const std::string& plugin, const ResultItem& tree) {
    const ResultItem* shown = &tree;
    if (!arguments_.node.empty()) {
      shown = FindItem(tree, arguments_.node);
      if (shown == nullptr) return absl::OkStatus();  // the plugin has no results of that node
    }
    found_ = true;
    if (arguments_.mode == "detailed") {
      WriteDetails(console_.out, plugin, *shown);
    } else if (arguments_.mode == "dump") {
      OutputSink sink(console_);
      console_.out << "---\n";
      return WriteResultsYaml(*shown, sink);
    } else if (json_) {
      reports_.push_back(ReportJson(plugin, arguments_.node, *shown));
    } else {
      console_.out << (first_ ? "" : "\n") << ReportText(plugin, arguments_.node, *shown);
      first_ = false;
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const std::string& run) {
    if (!found_) {
      return errors::NodeNotInArchive(arguments_.node);
    }
    if (json_ && arguments_.mode == "report") {
      console_.out << Dump({{"run", run}, {"plugins", reports_}});
    }
    return absl::OkStatus();
  }

 private:
  Console& console_;
  const ResultsArguments& arguments_;
  const bool json_;
  bool found_ = false;
  bool first_ = true;
  Json reports_ = Json::array();
};

// Names the damaged results on stderr: the archive may contain their content.
absl::Status WarnOfDamage(Console& console, Client& client, const v1::Run& run) {
  if (run.damaged_results() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto damaged, FindDamage(client, run));
  PrintMessage(console,
               absl::StrCat("\nThe store has ", DamageText(run.damaged_results()), ":\n",
                            absl::StripSuffix(
                                DamageTable(damaged, /*with_run=*/false, console.width), "\n")));
  return absl::OkStatus();
}

absl::StatusOr<int> ShowArchive(Console& console, Client& client, const v1::Run& run,
                                const ResultsArguments& arguments, bool json) {
  const std::unique_ptr<ByteSource> archive = client.ReadArchive(run.id(), 0);
  TreePrinter printer(console, arguments, json);
  absl::Status shown = ReadResultTrees(*archive, arguments.plugin,
                                       [&](const std::string& plugin, const ResultItem& tree) {
                                         return printer.Print(plugin, tree);
                                       });
  if (Interrupted()) return kExitInterrupted;
  RETURN_IF_ERROR(FinishOutput(console));
  if (shown.ok()) shown = printer.Finish(run.id());
  if (!shown.ok()) return WithSubject(shown, absl::StrCat("the archive of run ", run.id()));
  RETURN_IF_ERROR(WarnOfDamage(console, client, run));
  return kExitOk;
}

absl::StatusOr<v1::Plugin> FindPlugin(const v1::Run& run, const std::string& name) {
  for (const v1::Plugin& plugin : run.plugins()) {
    if (plugin.name() == name) return plugin;
  }
  return WithSubject(errors::PluginNotInRun(name), absl::StrCat("run ", run.id()));
}

// Returns the result that --plugin and --node name.
absl::StatusOr<v1::Result> NamedResult(Client& client, const v1::Run& run,
                                       const ResultsArguments& arguments) {
  ASSIGN_OR_RETURN(const auto plugin, FindPlugin(run, arguments.plugin));
  if (arguments.node.empty() && !plugin.once()) {
    return UsageError(
        absl::StrCat("plugin \"", plugin.name(), "\" runs on each node: --node is required"),
        "Name the node of the result, such as --node n1.");
  }
  v1::ResultKey key;
  key.set_run(run.id());
  key.set_plugin(plugin.name());
  key.set_node(arguments.node.empty() ? std::string(kGlobalNode) : arguments.node);
  auto result = client.GetResult(key);
  // The service answers senders and readers alike; a reader has no credential to correct.
  if (ReasonOf(result.status()) == "PAIR_NOT_PLANNED") {
    return FromService(errors::NodeNotInPlan(key.plugin(), key.node()), SubjectOf(result.status()));
  }
  if (!result.ok() || !result->sha256().empty()) return result;
  return WithSubject(HasEnded(run.state()) ? errors::NoResultOfEndedRun(key.plugin(), key.node())
                                           : errors::ResultNotFound(key.plugin(), key.node()),
                     absl::StrCat("run ", run.id()));
}

// Saves the stored result of one pair.
absl::StatusOr<int> SaveResult(Console& console, Client& client, const v1::Run& run,
                               const ResultsArguments& arguments, bool json) {
  ASSIGN_OR_RETURN(const auto result, NamedResult(client, run, arguments));
  const std::string path = TargetPath(arguments.output, SafeFileName(result.file_name()));
  std::optional<ProgressBar> bar;
  const absl::Status fetched = Fetch({
      .path = path,
      .size = result.size(),
      .sha256 = result.sha256(),
      .overwrite = false,
      .open = [&](int64_t offset) { return client.ReadResult(result, offset); },
      .on_progress =
          [&](int64_t done) {
            if (!bar) bar.emplace(console, path, done, result.size());
            bar->Update(done);
          },
  });
  if (Interrupted()) return kExitInterrupted;
  if (!fetched.ok()) return WithSubject(fetched, absl::StrCat("file ", path));
  if (json) {
    Json saved = ToJson(result, run.state());
    saved["file"] = path;
    console.out << Dump(saved);
  } else {
    console.out << path << "\n";
  }
  return kExitOk;
}

// Lists the stored results of a run with a damaged archive.
absl::StatusOr<int> ListWithoutArchive(Console& console, Client& client, const v1::Run& run,
                                       const ResultsArguments& arguments, bool json,
                                       const absl::Status& damage) {
  PrintMessage(
      console,
      absl::StrCat("error: ", Printable(ToStd(absl::StripPrefix(damage.message(), "archive: "))),
                   " (", ReasonOf(damage), "). The stored results; read one with: muster results ",
                   run.id(), " -p PLUGIN -n NODE -o FILE"));
  RETURN_IF_ERROR(ListPairs(console, client, run, arguments, json).status());
  return kExitDamaged;
}

absl::StatusOr<int> ShowResults(Console& console, const CommandLine& line,
                                ResultsArguments arguments) {
  if (!arguments.output.empty() && (arguments.plugin.empty() || !arguments.mode.empty())) {
    return UsageError("--output needs --plugin, and --node unless the plugin runs once; not --mode",
                      "Save one result: muster results RUN -p PLUGIN -n NODE -o FILE.");
  }
  CatchInterrupts();
  ASSIGN_OR_RETURN(const auto client, Connect(line.context_file));
  ASSIGN_OR_RETURN(const auto id, ResolveRunOrNewest(*client, arguments.run));
  ASSIGN_OR_RETURN(const auto run, client->GetRun(id));
  if (arguments.run.empty()) PrintMessage(console, absl::StrCat("The newest run, ", id, ":"));
  if (!arguments.output.empty()) {
    return SaveResult(console, *client, run, arguments, line.json);
  }
  if (run.state() == v1::RUN_STATE_COMPLETE) {
    const bool any_mode = arguments.mode.empty();
    if (any_mode) arguments.mode = "report";
    const auto shown = ShowArchive(console, *client, run, arguments, line.json);
    if (!any_mode || ReasonOf(shown.status()) != "ARCHIVE_DAMAGED") return shown;
    return ListWithoutArchive(console, *client, run, arguments, line.json, shown.status());
  }
  if (!arguments.plugin.empty()) RETURN_IF_ERROR(FindPlugin(run, arguments.plugin).status());
  PrintMessage(console,
               absl::StrCat(SummarySentence(ViewOf(run)),
                            HasEnded(run.state()) ? " It has no archive. Its results:"
                                                  : " It has no archive yet. Results so far:"));
  return ListPairs(console, *client, run, arguments, line.json);
}

}  // namespace

void AddResultsCommands(CommandLine& line) {
  CLI::App& command = AddCommand(
      line.app,
      {.name = "results",
       .summary = "Show the results of a run",
       .details = "For a complete run, reads the archive. The mode report prints counts and the "
                  "names of failed items, detailed prints a line of JSON for each item, and dump "
                  "prints the tree in YAML. None of them shows how a result was delivered: "
                  "meta/manifest.json in the archive does, with node_unproven for results that "
                  "came with a credential of --any-node.\n"
                  "For any other run, lists the results so far. Also does so for a complete run "
                  "whose archive is damaged; the exit code is then 10.\n"
                  "With --output, saves the stored result of one plugin on one node, and verifies "
                  "its SHA-256.",
       .example = "muster results\nmuster results 3f2a --plugin e2e --mode detailed | jq .name\n"
                  "muster results 3f2a -p hostfacts -n n1 -o n1.json"});
  const auto arguments = std::make_shared<ResultsArguments>();
  command
      .add_option("RUN", arguments->run,
                  "The id of the run, or a unique prefix of it (default: the newest run)")
      ->type_name("");
  command.add_option("-p,--plugin", arguments->plugin, "Only this plugin")->type_name("NAME");
  command.add_option("-n,--node", arguments->node, "Only this node")->type_name("NAME");
  AllowOnly(*command.add_option("-m,--mode", arguments->mode, "The output mode (default: report)"),
            "report|detailed|dump");
  command
      .add_option("-o,--output", arguments->output,
                  "Save one result: the file, or a folder for the file")
      ->type_name(kFileValue);
  AddJsonOption(line, command);
  AddContextOption(line, command);
  SetAction(line, command, [&line, arguments](Console& console) {
    return ShowResults(console, line, *arguments);
  });
}

}  // namespace muster::cli
