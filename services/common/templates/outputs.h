// The outputs that a node sent, against the documents of its deployment.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_OUTPUTS_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_OUTPUTS_H_

#include <string>
#include <vector>

#include "muster/v1/jobs.pb.h"
#include "services/common/templates/resolved_deployment.h"

namespace muster {

// Returns the faults, each with the name of the output; empty for outputs that the documents admit:
// all required ones, if its action requires them, and no others, each with a value that its schema
// admits, or without a value if it is sensitive.
std::vector<std::string> FaultsOfOutputs(const v1::JobRecord::Outputs& outputs,
                                         const ResolvedDeployment& deployment);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_OUTPUTS_H_
