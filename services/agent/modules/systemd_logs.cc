#include "services/agent/modules/systemd_logs.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "services/agent/child.h"
#include "services/agent/module_error.h"
#include "services/common/base/clock.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr int kPollMs = 200;
constexpr absl::Duration kStopGrace = absl::Seconds(5);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// The offsets of all complete lines, and the end of the last one.
struct Lines {
  std::vector<int64_t> begins;
  int64_t end = 0;
  bool complete = false;  // the journal was read to its end
};

absl::Status WriteAll(std::FILE* file, std::string_view data, const std::string& path) {
  if (std::fwrite(data.data(), 1, data.size(), file) == data.size()) return absl::OkStatus();
  return ErrnoError(errno, "write", path);
}

// Copies the journal's output, newest first, until its end, `max_bytes` or the time limit: in each
// case the newest entries are kept.
absl::StatusOr<Lines> CopyLines(int from, int64_t max_bytes, absl::Duration limit,
                                const std::stop_token& stop, std::FILE* to,
                                const std::string& path) {
  Lines lines;
  int64_t position = 0;
  int64_t begin = 0;
  std::vector<char> buffer(256 * 1024);
  const absl::Duration end = SystemClock().MonotonicNow() + limit;
  while (SystemClock().MonotonicNow() < end) {
    if (stop.stop_requested()) return ModuleStoppedError();
    pollfd ready{from, POLLIN, 0};
    if (::poll(&ready, 1, kPollMs) <= 0) continue;
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read", "the journal");
    if (got == 0) {
      lines.complete = true;
      break;
    }
    const std::string_view data(buffer.data(), static_cast<size_t>(got));
    RETURN_IF_ERROR(WriteAll(to, data, path));
    for (size_t i = data.find('\n'); i != std::string_view::npos; i = data.find('\n', i + 1)) {
      const int64_t line_end = position + static_cast<int64_t>(i) + 1;
      if (line_end > max_bytes) return lines;
      lines.begins.push_back(begin);
      lines.end = begin = line_end;
    }
    position += got;
  }
  return lines;
}

absl::Status WriteReversed(std::FILE* from, const Lines& lines, const std::string& path) {
  const File to(std::fopen(path.c_str(), "we"));
  if (!to) return ErrnoError(errno, "make", path);
  std::string line;
  int64_t end = lines.end;
  for (auto begin = lines.begins.rbegin(); begin != lines.begins.rend(); ++begin) {
    line.resize(static_cast<size_t>(end - *begin));
    if (std::fseek(from, *begin, SEEK_SET) != 0 ||
        std::fread(line.data(), 1, line.size(), from) != line.size()) {
      return ErrnoError(errno, "read", "the journal's copy");
    }
    RETURN_IF_ERROR(WriteAll(to.get(), line, path));
    end = *begin;
  }
  if (std::fflush(to.get()) != 0) return ErrnoError(errno, "write", path);
  return absl::OkStatus();
}

class SystemdLogsModule final : public Module {
 public:
  absl::StatusOr<ModuleResult> Run(const ModuleContext& context,
                                   const std::stop_token& stop) override {
    SubprocessOptions options;
    options.argv = {"journalctl", "--output=json", "--no-pager", "--reverse"};
    options.working_directory = context.scratch_dir;
    options.environment = ChildEnvironment();
    options.out = ChildOutput::Pipe();
    options.err = ChildOutput::Tail(kOutputTail);
    auto child = Subprocess::Start(std::move(options));
    if (!child.ok()) {
      return ToolNotFoundError(
          "journalctl", child.status(),
          "This node does not use systemd's journal; leave it out of the plan, "
          "or install systemd.");
    }
    const std::string newest_first = context.scratch_dir + "/newest-first";
    const File copy(std::fopen(newest_first.c_str(), "w+e"));
    if (!copy) return ErrnoError(errno, "make", newest_first);
    const UniqueFd out = (*child)->TakeStdout();
    const auto lines = CopyLines(out.get(), context.max_output_bytes, context.time_limit, stop,
                                 copy.get(), newest_first);
    const bool complete = lines.ok() && lines->complete;
    std::optional<ExitStatus> exit;
    if (complete) exit = (*child)->Wait(kStopGrace);
    if (!exit) exit = (*child)->Stop(kStopGrace);
    if (!lines.ok()) return lines.status();
    if (lines->begins.empty()) {
      const std::string tail = (*child)->StderrTail();
      if (!complete) return PluginTimedOutError("journalctl", context.time_limit, tail);
      return exit->ok() ? JournalEmptyError(tail)
                        : PluginFailedError("journalctl", exit->Describe(), tail);
    }
    const std::string path = context.results_dir + "/journal.json";
    RETURN_IF_ERROR(WriteReversed(copy.get(), *lines, path));
    return ModuleResult{path, "application/json"};
  }
};

}  // namespace

std::unique_ptr<Module> MakeSystemdLogsModule() { return std::make_unique<SystemdLogsModule>(); }

}  // namespace muster
