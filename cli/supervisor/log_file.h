// The supervisor's own words, and a bound on what the services write.
#ifndef MUSTER_CLI_SUPERVISOR_LOG_FILE_H_
#define MUSTER_CLI_SUPERVISOR_LOG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::supervisor {

// One line with the time on stderr, which is the supervisor's log file.
void Log(std::string_view message);

// When the file at `path` is larger than `limit` bytes: moves its content to PATH.1 (over the one
// before) and empties it. Its writers have it open for appending and write on; what they write
// during the copy may be lost.
void BoundLogFile(const std::string& path, int64_t limit);

// The last lines of a log, at most `lines`; empty if there is none.
std::string LogTail(const std::string& path, int lines);

}  // namespace muster::supervisor

#endif  // MUSTER_CLI_SUPERVISOR_LOG_FILE_H_
