// The content of a deployment, as people see it.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_DEPLOYMENT_CONTENT_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_DEPLOYMENT_CONTENT_H_

#include <google/protobuf/repeated_field.h>

#include "muster/v1/deployments.pb.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/templates/resolved_deployment.h"

namespace muster {

// Sets type, template, action, image, parameters and files of `*description`. `resolved` is that of
// `content`. The values of sensitive parameters and the content of files are left out.
void DescribeContent(const v1::Command::Deployment& content, const ResolvedDeployment& resolved,
                     v1::Deployment* description);

// Adds files without their content to `*description`.
void DescribeFiles(const google::protobuf::RepeatedPtrField<v1::Command::File>& files,
                   v1::Deployment* description);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_DEPLOYMENT_CONTENT_H_
