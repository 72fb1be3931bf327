// The report of a delivery's outcome by `muster agent` and `muster submit`.
#ifndef MUSTER_SERVICES_AGENT_OUTCOME_H_
#define MUSTER_SERVICES_AGENT_OUTCOME_H_

#include <string>

#include "services/client/client.h"
#include "services/client/config_fields.h"

namespace muster {

// Writes the outcome to stderr: one line, or the error, `subject` and the next step, each with a
// line. Text of another machine changes neither the terminal nor these lines: control characters
// become '?', and further lines are indented. Returns the exit code.
int PrintOutcome(const client::Delivery& delivery, const std::string& subject);

// Writes to stderr, in the same way, why a delivery waits: the error, its subject and the next
// step, each with a line. Omits what is empty.
void PrintWait(const std::string& message, const std::string& reason, const std::string& subject,
               const std::string& next_step);

// Returns the subject of an error about the configuration at `path`; empty: only the environment.
// Names the variables that override the file.
std::string ConfigSubject(const std::string& path, const client::EnvironmentReader& environment);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_OUTCOME_H_
