#include "cli/sources/git_source.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/interrupt.h"
#include "cli/sources/source_archive.h"
#include "cli/temporary_folder.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

// Bounds what git writes and allocates for the bytes of a server.
constexpr char kLimitProgram[] = "/usr/bin/prlimit";
constexpr int64_t kMaxMemory = int64_t{4} << 30;
constexpr size_t kMaxListing = size_t{8} << 20;
constexpr size_t kTail = 4'096;
constexpr char kCheckAddress[] =
    "Check the address, the ref, and the access to the server. For a private repository, clone it "
    "yourself and name the folder.";

constexpr size_t kMaxCaFile = size_t{4} << 20;
constexpr char kNameTheCa[] =
    "Name a file with the CA certificates of the git server, in PEM: --git-ca FILE, or "
    "MUSTER_GIT_CA.";

// Returns the last line of what git printed, which is the cause.
std::string CauseOf(const std::string& text) {
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(text), '\n', absl::SkipWhitespace());
  return lines.empty() ? "git printed no cause" : CleanUtf8(lines.back());
}

// Returns whether `ref` is the beginning of a commit's id: git prints 7 digits or more.
bool IsShortCommit(const std::string& ref) {
  return ref.size() >= 7 && ref.size() < 40 &&
         std::ranges::all_of(
             ref,
             [](unsigned char c) { return absl::ascii_isxdigit(c) && !absl::ascii_isupper(c); });
}

// libcurl's errors for a missing file or another content do not name the option.
absl::Status CheckCaFile(const std::string& file) {
  if (file.empty()) return absl::OkStatus();
  const auto content = ReadFileBounded(file, kMaxCaFile);
  if (!content.ok()) {
    return Annotate(content.status(),
                    "the CA certificates of git servers (--git-ca, MUSTER_GIT_CA)");
  }
  if (absl::StrContains(*content, "-----BEGIN CERTIFICATE-----")) return absl::OkStatus();
  return errors::SourceUnusable(file, "it has no certificate in PEM", kNameTheCa);
}

class GitSource {
 public:
  GitSource(const GitAddress& address, const GitOptions& options)
      : address_(address),
        options_(options),
        end_(SystemClock().MonotonicNow() + options.time_limit) {}

  absl::StatusOr<std::string> Read(SourceFiles& files) {
    if (folder_.path().empty()) return Failed("no temporary folder can be created", "Set TMPDIR.");
    RETURN_IF_ERROR(Run({"init", "--quiet", "--bare", "--template=", repository_}).status());
    RETURN_IF_ERROR(KeepAllFiles());
    RETURN_IF_ERROR(Run({"-C", repository_, "fetch", "--quiet", "--depth=1", "--no-tags",
                         "--no-recurse-submodules", "--no-auto-maintenance",
                         "--no-write-commit-graph", "--end-of-options", address_.url, address_.ref})
                        .status());
    ASSIGN_OR_RETURN(std::string commit,
                     Run({"-C", repository_, "rev-parse", "--verify", "FETCH_HEAD^{commit}"}));
    commit = std::string(absl::StripAsciiWhitespace(commit));
    RETURN_IF_ERROR(CheckFolder(commit));
    const std::string tree = absl::StrCat(commit, ":", address_.folder);
    RETURN_IF_ERROR(RefuseSubmodules(tree, files));
    const std::string archive = folder_.path() + "/files.tar";
    RETURN_IF_ERROR(Run({"-C", repository_, "archive", "--format=tar", tree}, archive).status());
    RETURN_IF_ERROR(ReadSourceArchive(archive, files).status());
    return commit;
  }

 private:
  // Runs git; its output goes to `out`, or is returned.
  absl::StatusOr<std::string> Run(std::vector<std::string> arguments, const std::string& out = "") {
    SubprocessOptions options;
    options.argv = {kLimitProgram,
                    absl::StrCat("--fsize=", options_.max_file),
                    absl::StrCat("--as=", kMaxMemory),
                    "--core=0",
                    "--",
                    options_.program,
                    "-c",
                    "protocol.allow=never",
                    "-c",
                    "protocol.https.allow=always",
                    "-c",
                    "http.followRedirects=false",
                    "-c",
                    "core.hooksPath=/dev/null",
                    "-c",
                    "core.fsmonitor=false",
                    "-c",
                    "credential.helper=",
                    "-c",
                    "fetch.unpackLimit=1",  // one pack, of bounded size
                    "-c",
                    "fetch.fsckObjects=true",
                    "-c",
                    "gc.auto=0",
                    "-c",
                    "pack.threads=1",
                    "-c",
                    "http.lowSpeedLimit=1000",
                    "-c",
                    "http.lowSpeedTime=60"};
    if (!options_.ca_file.empty()) {
      options.argv.insert(options.argv.end(), {"-c", "http.sslCAInfo=" + options_.ca_file});
    }
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.working_directory = folder_.path();
    options.environment = AllowListedEnvironment(
        {"http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"});
    options.environment.insert(
        options.environment.end(),
        {"PATH=/usr/bin:/bin", "HOME=" + folder_.path(), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
         "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
         "GIT_ASKPASS=/bin/false", "GIT_ALLOW_PROTOCOL=https", "GIT_LFS_SKIP_SMUDGE=1",
         "GIT_NO_REPLACE_OBJECTS=1", "GIT_LITERAL_PATHSPECS=1"});
    options.out = out.empty() ? ChildOutput::Tail(kTail) : ChildOutput::File(out);
    options.err = ChildOutput::Tail(kTail);
    auto child = Subprocess::Start(std::move(options));
    if (!child.ok()) {
      return Failed(ToStd(child.status().message()), "Install the program git.");
    }
    // Ctrl-C does not reach it: it has its own process group.
    const InterruptHook hook([&child] { (*child)->Signal(SIGKILL); });
    const auto exit = (*child)->Wait(end_ - SystemClock().MonotonicNow());
    if (Interrupted()) return absl::CancelledError("interrupted");
    if (!exit) {
      return Failed(absl::StrCat("it took longer than ", absl::FormatDuration(options_.time_limit)),
                    "Clone the repository yourself, and name the folder.");
    }
    if (!exit->ok()) {
      if (exit->signal != 0) return Failed(exit->Describe(), kCheckAddress);
      return FailedBy(CauseOf((*child)->StderrTail()));
    }
    return (*child)->StdoutTail();
  }

  // The attributes of the repository make `git archive` leave files out, or change them. Those of
  // this file have precedence.
  absl::Status KeepAllFiles() {
    std::error_code fault;
    std::filesystem::create_directories(repository_ + "/info", fault);
    std::ofstream file(repository_ + "/info/attributes");
    file << "* -export-ignore -export-subst -text -ident -filter -working-tree-encoding\n";
    file.close();
    return file ? absl::OkStatus() : Failed("its attributes cannot be written", "Set TMPDIR.");
  }

  // Git's own errors for a missing folder do not name it as one.
  absl::Status CheckFolder(const std::string& commit) {
    if (address_.folder.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::string entry, Run({"-C", repository_, "ls-tree", "-z",
                                                   "--full-tree", commit, "--", address_.folder}));
    if (entry.starts_with("040000 tree ")) return absl::OkStatus();
    return Failed(
        entry.empty()
            ? absl::StrCat("the commit ", commit, " has no folder \"", address_.folder, "\"")
            : absl::StrCat("\"", address_.folder, "\" is not a folder in the commit ", commit),
        "Name a folder of this commit after the #, without its repository; without # all "
        "files are taken.");
  }

  // `git archive` leaves them out without a word.
  absl::Status RefuseSubmodules(const std::string& tree, const SourceFiles& files) {
    const std::string listing = folder_.path() + "/listing";
    RETURN_IF_ERROR(
        Run({"-C", repository_, "ls-tree", "-r", "-z", "--full-tree", tree}, listing).status());
    const auto text = ReadFileBounded(listing, kMaxListing);
    if (!text.ok()) {
      return Failed("it has too many files", "Name a folder of the repository.");
    }
    for (const absl::string_view entry : absl::StrSplit(*text, '\0', absl::SkipEmpty())) {
      if (!absl::StartsWith(entry, "160000 ")) continue;
      const auto path = entry.substr(std::min(entry.find('\t') + 1, entry.size()));
      return files.Refuse({path.data(), path.size()}, "is a submodule, which is not fetched",
                          "Clone the repository with its submodules, and name the folder.");
    }
    return absl::OkStatus();
  }

  // Returns the error for what git printed: the causes that an operator can remove have their own
  // next steps.
  absl::Status FailedBy(const std::string& cause) const {
    if (absl::StrContains(cause, "couldn't find remote ref")) {
      if (IsShortCommit(address_.ref)) {
        return Failed(absl::StrCat("it has no branch and no tag ", address_.ref,
                                   ", and a server does not find a commit by a part of its id"),
                      absl::StrCat("Write the whole id of the commit: git rev-parse ", address_.ref,
                                   "^{commit}"));
      }
      return Failed(absl::StrCat("it has no branch and no tag ", address_.ref),
                    absl::StrCat("Choose one of those that it has: git ls-remote ", address_.url));
    }
    if (absl::StrContains(cause, "not our ref")) {
      return Failed(absl::StrCat("it has no commit ", address_.ref, ", or does not show it"),
                    "Push the commit, or name a branch or a tag with it.");
    }
    if (absl::StrContains(cause, "certificate")) {
      return Failed(cause, options_.ca_file.empty()
                               ? std::string(kNameTheCa)
                               : absl::StrCat("The certificate of the server is of none of the CAs "
                                              "in ",
                                              options_.ca_file, ". ", kNameTheCa));
    }
    return Failed(cause, kCheckAddress);
  }

  absl::Status Failed(std::string_view why, std::string_view next_step) const {
    return errors::GitFailed(absl::StrCat(address_.url, "@", address_.ref), why, next_step);
  }

  const GitAddress& address_;
  const GitOptions& options_;
  const absl::Duration end_;
  const TemporaryFolder folder_;
  const std::string repository_ = folder_.path() + "/repository";
};

}  // namespace

absl::StatusOr<std::string> ReadGitSource(const GitAddress& address, const GitOptions& options,
                                          SourceFiles& files) {
  if (!options.hosts.empty() &&
      std::ranges::find(options.hosts, address.host) == options.hosts.end()) {
    return errors::SourceUnusable(
        address.url,
        absl::StrCat("the host ", address.host,
                     " is none of the admitted ones: ", absl::StrJoin(options.hosts, ", ")),
        absl::StrCat("Use an admitted host, or admit this one: --git-host ", address.host,
                     ", or MUSTER_GIT_HOSTS."));
  }
  RETURN_IF_ERROR(CheckCaFile(options.ca_file));
  return GitSource(address, options).Read(files);
}

}  // namespace muster::cli
