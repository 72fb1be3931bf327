#include "cli/rpc/job_reference.h"

#include <utility>

#include "cli/exit_code.h"
#include "cli/rpc/id_prefix.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/signed_command.h"

namespace muster::cli {
namespace {

constexpr int kPage = 1000;

absl::StatusOr<v1::ListJobsResponse> ListPage(JobClient& client, const std::string& token) {
  v1::ListJobsRequest request;
  request.set_page_size(kPage);
  request.set_page_token(token);
  return client.List(request);
}

}  // namespace

absl::StatusOr<std::string> ResolveJob(JobClient& client, const std::string& text) {
  return ResolveId({"job", "jobs", "muster job list", kJobIdSize}, text,
                   FromService(errors::NoJobBeginsWith(text), "the list of jobs"),
                   [&client](const std::string& token) -> absl::StatusOr<IdPage> {
                     ASSIGN_OR_RETURN(const auto jobs, ListPage(client, token));
                     IdPage page = {.ids = {}, .next = jobs.next_page_token()};
                     for (const v1::Job& job : jobs.jobs()) page.ids.push_back(job.job());
                     return page;
                   });
}

absl::StatusOr<bool> HasJobs(JobClient& client, const std::string& uri) {
  v1::ListJobsResponse page;
  do {
    ASSIGN_OR_RETURN(page, ListPage(client, page.next_page_token()));
    for (const v1::Job& job : page.jobs()) {
      if (job.submitted_by() == uri) return true;
    }
  } while (!page.next_page_token().empty());
  return false;
}

absl::StatusOr<std::vector<v1::Job>> ListRunningJobs(JobClient& client, const std::string& uri) {
  std::vector<v1::Job> running;
  v1::ListJobsResponse page;
  do {
    ASSIGN_OR_RETURN(page, ListPage(client, page.next_page_token()));
    for (v1::Job& job : *page.mutable_jobs()) {
      if (job.state() == v1::JOB_STATE_RUNNING && job.submitted_by() == uri) {
        running.push_back(std::move(job));
      }
    }
  } while (!page.next_page_token().empty());
  return running;
}

}  // namespace muster::cli
