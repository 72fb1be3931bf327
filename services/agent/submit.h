// `muster submit`: delivers one file, for a plugin that is a shell script.
#ifndef MUSTER_SERVICES_AGENT_SUBMIT_H_
#define MUSTER_SERVICES_AGENT_SUBMIT_H_

#include <string>

namespace muster {

struct SubmitOptions {
  // A JSON file (docs/agent-config.schema.json); empty: only the environment.
  std::string config_path;
  // The file to deliver; "-" is standard input. Empty together with error_text.
  std::string file;
  // The text of an error result, instead of a file.
  std::string error_text;
  // Empty: from the file name.
  std::string media_type;
  std::string file_name;
};

// Delivers, and returns the exit code, a client::Code (docs/agent.md lists them). Prints the
// outcome on stderr. Call it from main before other threads start: it waits for SIGTERM and SIGINT.
// Blocks.
int RunSubmit(const SubmitOptions& options);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_SUBMIT_H_
