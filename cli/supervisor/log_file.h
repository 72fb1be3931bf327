// The log of the supervisor, and the limit on the logs of the services.
#ifndef MUSTER_CLI_SUPERVISOR_LOG_FILE_H_
#define MUSTER_CLI_SUPERVISOR_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::supervisor {

// Writes one line with the time to stderr, which is the supervisor's log file.
void Log(std::string_view message);

// If the file at `path` is larger than `limit` bytes, copies it to PATH.1 (replacing it) and
// truncates it. Its writers append to the same file; lines written during the copy may be lost.
void RotateLogFile(const std::string& path, int64_t limit);

// Returns the size of a log, or 0 if it does not exist.
int64_t LogSize(const std::string& path);

// Returns the last lines of a log, at most `lines`, without its first `skip` bytes. Returns an
// empty text if there are none. A log that is shorter than `skip` was truncated: no bytes are
// skipped.
std::string LogTail(const std::string& path, int lines, int64_t skip = 0);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_LOG_FILE_H_
