// `muster submit`: delivers one file, for a plugin that is a shell script.
#ifndef MUSTER_SERVICES_AGENT_SUBMIT_H_
#define MUSTER_SERVICES_AGENT_SUBMIT_H_

#include <string>

namespace muster {

struct SubmitOptions {
  // A JSON file (docs/agent-config.schema.json); empty: the environment alone.
  std::string config_path;
  // The file to deliver; "-" is the standard input. Empty together with error_text.
  std::string file;
  // Instead of a file: why there is no result.
  std::string error_text;
  // Empty: by the file's name.
  std::string media_type;
  std::string file_name;
};

// Delivers; the exit code is a client::Code (docs/agent.md lists them). Says on stderr what
// happened. Call it from main before other threads start: it waits for SIGTERM and SIGINT. Blocks.
int RunSubmit(const SubmitOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_SUBMIT_H_
