#include "cli/rpc/status_source.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/output/status_json.h"
#include "cli/rpc/credentials_file.h"
#include "cli/rpc/run_reference.h"
#include "cli/rpc/session.h"
#include "cli/rpc/status_endpoint.h"
#include "cli/supervisor/home.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/identity/identity.h"

namespace muster::cli {
namespace {

constexpr int kPage = 10'000;
constexpr int kPairsShown = 10;  // of each outcome
constexpr absl::Duration kRunLimit = absl::Seconds(2);

class EndpointSource final : public StatusSource {
 public:
  explicit EndpointSource(const StatusCredentials& credentials) : endpoint_(credentials) {}

  absl::StatusOr<RunView> Fetch() override {
    ASSIGN_OR_RETURN(auto json, endpoint_.GetIfChanged());
    if (!json) return last_;
    ASSIGN_OR_RETURN(auto status, ParseStatusJson(*json));
    last_ = ViewOf(std::move(status));
    return last_;
  }

  absl::StatusOr<Json> FetchAll() override {
    ASSIGN_OR_RETURN(const auto body, endpoint_.Get());
    Json json = Json::parse(body, nullptr, false);
    if (json.is_object()) return json;
    return ParseStatusJson(body).status();
  }

 private:
  StatusEndpoint endpoint_;
  RunView last_;
};

class OperatorSource final : public StatusSource {
 public:
  OperatorSource(std::shared_ptr<Client> client, std::string run)
      : client_(std::move(client)), run_(std::move(run)) {}

  absl::StatusOr<RunView> Fetch() override {
    v1::GetStatusRequest request;
    request.set_run(run_);
    ASSIGN_OR_RETURN(v1::RunStatus status, GetStatus(request));
    for (const v1::PairStatus& pair : status.stragglers()) {
      // Those that have not started are asked for below.
      if (pair.reason() != v1::REASON_NOT_STARTED) *status.add_pairs() = pair;
    }
    request.set_run(run_);
    request.set_page_size(kPairsShown);
    for (const auto& [outcome, count] :
         {std::pair{v1::OUTCOME_ERROR, status.counts().errors()},
          std::pair{v1::OUTCOME_TIMED_OUT, status.counts().timed_out()}}) {
      request.set_outcome(outcome);
      if (count == 0) continue;
      RETURN_IF_ERROR(AddPairs(request, status));
    }
    request.set_outcome(v1::OUTCOME_UNSPECIFIED);
    request.add_reasons(v1::REASON_RUNNING);
    RETURN_IF_ERROR(AddPairs(request, status));
    if (ReasonCount(status, v1::REASON_NOT_STARTED) > 0) {
      request.set_reasons(0, v1::REASON_NOT_STARTED);
      RETURN_IF_ERROR(AddPairs(request, status));
    }
    return ViewOf(std::move(status));
  }

  absl::StatusOr<Json> FetchAll() override {
    v1::GetStatusRequest request;
    request.set_run(run_);
    request.set_page_size(kPage);
    ASSIGN_OR_RETURN(v1::RunStatus page, GetStatus(request));
    Json json = StatusJson(page);
    request.set_run(run_);
    while (!page.next_page_token().empty()) {
      request.set_page_token(page.next_page_token());
      ASSIGN_OR_RETURN(page, client_->GetStatus(request));
      for (const v1::PairStatus& pair : page.pairs()) json["plugins"].push_back(StatusJson(pair));
    }
    return json;
  }

 private:
  absl::StatusOr<v1::RunStatus> GetStatus(const v1::GetStatusRequest& request) {
    auto status = client_->GetStatus(request);
    if (!status.ok()) return run_.empty() ? RunNotFoundToNoRuns(status.status()) : status.status();
    run_ = status->run();  // later calls ask for the same run
    return status;
  }

  // Appends the pairs that `request` selects. Skips running pairs without progress.
  absl::Status AddPairs(const v1::GetStatusRequest& request, v1::RunStatus& status) {
    ASSIGN_OR_RETURN(const auto page, client_->GetStatus(request));
    for (const v1::PairStatus& pair : page.pairs()) {
      if (pair.reason() != v1::REASON_RUNNING || pair.has_progress()) *status.add_pairs() = pair;
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<Client> client_;
  std::string run_;
};

// Returns the credentials file to use, or nothing.
absl::StatusOr<std::optional<std::string>> ChooseFile(const StatusQuery& query) {
  if (!query.credentials_file.empty()) return query.credentials_file;
  if (!query.context_file.empty()) return std::nullopt;
  const auto home = supervisor::HomeFromEnvironment();
  if (!home.ok()) return std::nullopt;
  return FindCredentials(*home, query.run);
}

// Returns true if no option and no variable names a credentials file.
bool WasSearched(const StatusQuery& query) {
  const char* named = std::getenv("MUSTER_CREDENTIALS");
  return query.credentials_file.empty() && (named == nullptr || *named == '\0');
}

// Returns true if the aggregator of the fleet that issued the credentials does not know their run:
// it was deleted, for example by retention, and their listener is closed.
bool IsOfDeletedRun(const StatusCredentials& credentials) {
  const auto identity = IdentityOf(credentials);
  const auto run = identity ? RunOf(*identity) : std::nullopt;
  const auto context = ReadCheckedContext("");
  if (!run || !context.ok() || context->fleet != identity->fleet) return false;
  return ReasonOf(Client(*context).GetRun(std::string(*run), kRunLimit).status()) ==
         "RUN_NOT_FOUND";
}

// Removes a file of $MUSTER_HOME.
bool RemoveFromHome(const std::string& file) {
  const auto home = supervisor::HomeFromEnvironment();
  if (!home.ok() || !absl::StartsWith(file, absl::StrCat(home->path(), "/"))) return false;
  std::error_code fault;
  return std::filesystem::remove(file, fault);
}

// Returns true if the search found an outdated or exposed file, and this user is an operator.
bool MayUseContextInstead(const StatusQuery& query, const absl::Status& failure) {
  const std::string reason = ReasonOf(failure);
  return (reason == "CREDENTIALS_TOO_OLD" || reason == "CERTIFICATE_EXPIRED" ||
          reason == "SECRET_FILE_EXPOSED") &&
         WasSearched(query) && ReadCheckedContext(query.context_file).ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StatusSource>> OpenStatusSource(const StatusQuery& query) {
  ASSIGN_OR_RETURN(const auto file, ChooseFile(query));
  if (file) {
    auto credentials = ReadCredentials(*file, absl::Now(), query.max_age);
    const bool outdated = credentials.ok() && WasSearched(query) && IsOfDeletedRun(*credentials);
    if (outdated && RemoveFromHome(*file)) return OpenStatusSource(query);  // with the next file
    if (credentials.ok() && !outdated) {
      RETURN_IF_ERROR(WithSubject(AsUsageError(CheckRun(*credentials, query.run)),
                                  absl::StrCat("credentials file ", *file)));
      return std::make_unique<EndpointSource>(*credentials);
    }
    if (!outdated && !MayUseContextInstead(query, credentials.status())) {
      return WithSubject(credentials.status(), absl::StrCat("credentials file ", *file));
    }
  }
  auto client = Connect(query.context_file);
  if (ReasonOf(client.status()) == "CONTEXT_NOT_FOUND") {
    return WithSubject(errors::NoContextForStatus(ContextFile(query.context_file).value_or("")),
                       SubjectOf(client.status()));
  }
  RETURN_IF_ERROR(client.status());
  std::string run;
  if (!query.run.empty()) {  // else the status service returns the newest run
    ASSIGN_OR_RETURN(run, ResolveRun(**client, query.run));
  }
  return OperatorStatusSource(*std::move(client), std::move(run));
}

std::unique_ptr<StatusSource> OperatorStatusSource(std::shared_ptr<Client> client,
                                                   std::string run) {
  return std::make_unique<OperatorSource>(std::move(client), std::move(run));
}

}  // namespace muster::cli
