// Delivers results to a Muster fleet, for authors of plugins, sidecars and agents.
//
//   muster::client::Status status;
//   auto client = muster::client::Client::Create(
//       *muster::client::Config::Load("node.json", &status), &status);
//   auto delivery = client->SubmitFile("/tmp/results/facts.json", {});
//   return static_cast<int>(delivery.status.code);
//
// A delivery that succeeds is committed: it survives the loss of any process and of power. Until
// then the client retries, over lost connections, restarts of the service and, with
// `Config::state_dir`, restarts of this process, and resumes at the last acknowledged byte. Keep
// the file until then. Files are never read into memory as a whole.
//
// The library changes no global state of the process: no environment, no signal handlers, no
// settings. It does not log; each outcome is in a Status.
#ifndef MUSTER_SERVICES_CLIENT_CLIENT_H_
#define MUSTER_SERVICES_CLIENT_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace muster::client {

// The outcome of an operation. The values are the exit codes of `muster agent` and `muster submit`.
enum class Code {
  kOk = 0,
  kFailed = 1,     // none of the other codes; see the message
  kBadConfig = 2,  // invalid configuration or argument
  // The outcomes of a delivery.
  kErrorDelivered = 10,  // an error result is committed
  kRefused = 11,         // not planned or not permitted
  kConflict = 12,        // other content is committed
  kRunEnded = 13,        // the run has ended
  kDeadline = 14,        // not committed in time
  kInterrupted = 15,     // stopped before the commit
  kSpooled = 16,         // spooled by a relay, not committed yet
};

// The details of an outcome. A value.
struct Status {
  Code code = Code::kOk;
  // For programs: UPPER_SNAKE_CASE, listed in docs/errors.md. Empty for OK.
  std::string reason;
  // The failure, and the object that it concerns.
  std::string message;
  // The next step; may be empty.
  std::string next_step;

  bool ok() const { return code == Code::kOk; }
};

// Where to deliver, with which identity, and for how long. The fields have the names of those in
// the JSON file that `muster credentials export` writes (docs/agent.md describes them).
struct Config {
  // "host:port" of Muster's API; tried in turn.
  std::vector<std::string> grpc_targets;
  // "host:port" of the status service; tried in turn.
  std::vector<std::string> status_targets;
  // "https://host:port" of the run's listener for legacy clients; used if `grpc_targets` is empty.
  std::string aggregator_url;
  std::string run;
  std::string plugin;
  // "global" for a plugin that runs once.
  std::string node;
  // PEM: the fleet's root for grpc_targets, the run CA for aggregator_url.
  std::string fleet_ca_cert;
  std::string ca_cert;
  // PEM: the certificate, then its issuers up to the fleet's root.
  std::string client_cert;
  // PEM, or the path of a file with it.
  std::string client_key;
  std::string client_key_file;
  // Replaces these fields and fleet_ca_cert for grpc_targets: a folder with key.pem, cert.pem and
  // ca.pem, which another program renews atomically (a renamed symbolic link). Can be set neither
  // in the file nor in the environment.
  std::string identity_folder;
  // The folder of the done file (WaitForDoneFileAndDeliver).
  std::string results_dir = "/tmp/sonobuoy/results";
  // The time for which a done file must exist before it is read.
  std::chrono::milliseconds done_file_delay{5000};
  // A folder for state that survives this process; empty: a restart sends everything again.
  std::string state_dir;
  // The time to give up, if the certificate does not expire earlier.
  std::optional<std::chrono::system_clock::time_point> deadline;
  // If true, a delivery ends with kSpooled when a relay without a route to the aggregator has
  // spooled the result. The relay delivers it later; keep the file until then. If false, the
  // delivery waits until the result is committed.
  bool leave_when_spooled = false;
  // The limit of a result in bytes; a larger one is replaced by an error result.
  int64_t max_result_bytes = int64_t{1} << 40;

  // Reads a JSON file; environment variables take precedence (docs/agent.md, "Configuration"). With
  // an empty path reads only the environment. Returns nothing and sets `*status` if the
  // configuration is invalid; the message for an unknown field suggests the nearest known one.
  static std::optional<Config> Load(const std::string& path, Status* status);
  static std::optional<Config> FromEnvironment(Status* status);
};

// The committed result. A value.
struct Receipt {
  // 1 for the first outcome of the pair; each replacement increments it. 0 if the service did not
  // report it (legacy listeners).
  int64_t generation = 0;
  int64_t size = 0;
  std::string sha256;  // lower-case hex
};

struct Delivery {
  Status status;
  Receipt receipt;  // for OK and kErrorDelivered
  // The outcome is that of an error result, delivered by SubmitError or in place of a faulty
  // result. If it was not delivered, the message and the next step include the error.
  bool is_error = false;
};

// Optional properties of a result.
struct SubmitOptions {
  // Empty: derived from the extension of the file name.
  std::string media_type;
  // Empty: the name of the file.
  std::string file_name;
  // SubmitFile: another program may replace the file by a link. The path has no symbolic links, as
  // std::filesystem::canonical returns it; if it has one now, nothing is delivered.
  bool no_links = false;
};

// The progress that a plugin reports (Sonobuoy's fields).
struct Progress {
  std::string message;
  int64_t total = 0;
  int64_t completed = 0;
  std::vector<std::string> failures;
  std::vector<std::string> errors;
  // True: the report adds to earlier ones.
  bool append_totals = false;
  int64_t append_completed = 0;
  std::vector<std::string> append_failing;
};

// The current activity of a sender, as its heartbeats report it.
enum class Phase {
  kChecking = 1,       // checks before the work
  kWorking = 2,        // the default
  kWaiting = 3,        // for the plugin's done file
  kDelivering = 4,     // set by the library
  kBlocked = 5,        // waits for something outside of the plugin
  kBackpressured = 6,  // waits because a service asked for it; set by the library
};

// A detected obstacle to the work.
struct Fault {
  enum class Check {
    kNameResolution = 1,
    kConnection = 2,
    kTls = 3,
    kClock = 4,
    kAuthorisation = 5
  };
  Check check = Check::kConnection;
  std::string address;  // "host:port"
  // The fault and the next step; longer texts are cut to 1024 characters.
  std::string message;
  std::string next_step;
};

// Called when heartbeats begin to fail (with the error), when they succeed again (with OK), and
// when another process begins to send them with the same identity (DUPLICATE_AGENT). Runs on a
// thread of the library. It must not block and must not call StartHeartbeats or StopHeartbeats.
using HeartbeatWatcher = std::function<void(const Status& status)>;

// Called when a delivery waits before its next attempt, with the error of the last one. Runs on the
// thread of the delivery and must not call the client.
using WaitWatcher = std::function<void(const Status& why)>;

// Fills `buffer` with up to `size` bytes. Returns their number, 0 at the end, or a negative value
// for an error.
using Reader = std::function<std::ptrdiff_t(char* buffer, size_t size)>;

// Delivers the result of one (run, plugin, node). Thread-safe; concurrent deliveries are
// serialised. Every call blocks until its outcome, the deadline, or `stop`.
class Client {
 public:
  // Returns nothing and sets `*status` if the configuration is unusable: a field is missing, the
  // key does not belong to the certificate, or the certificate has expired. Opens no connection.
  static std::unique_ptr<Client> Create(const Config& config, Status* status);
  ~Client();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sets the watcher of deliveries that begin later.
  void WatchWaits(WaitWatcher watcher);

  // Delivers a regular file. If it changes while it is read, an error result is delivered instead
  // (kErrorDelivered), never mixed content.
  Delivery SubmitFile(const std::string& path, const SubmitOptions& options,
                      const std::stop_token& stop = {});

  // Delivers the bytes of `reader`. They are first written to an unnamed temporary file (in
  // state_dir, else $TMPDIR, else /var/tmp), so that the delivery can be retried. A failure of the
  // reader is delivered as an error result.
  Delivery SubmitStream(const Reader& reader, const SubmitOptions& options,
                        const std::stop_token& stop = {});

  // Delivers an error result (kErrorDelivered on success; kConflict if another result or error is
  // committed, which stays). A genuine result may replace it until the run is sealed. The text is
  // cut to 64 KiB. Over aggregator_url the outcome is kErrorDelivered in both cases: the legacy
  // protocol does not report which result is committed.
  Delivery SubmitError(const std::string& text, const std::stop_token& stop = {});

  // Makes one attempt of at most 10 s, because the next report replaces this one. A report that
  // failed is sent with the next heartbeat, unless append_totals is set.
  Status ReportProgress(const Progress& progress);

  // Sends heartbeats from now on, until StopHeartbeats or the end of this client. If heartbeats end
  // without a goodbye, the fleet detects the loss within minutes. Returns immediately. A separate
  // thread sends at the interval that the fleet requests; it never fails or delays a delivery. Does
  // nothing without status_targets and aggregator_url. Heartbeats over aggregator_url contain no
  // activity.
  //
  // While a younger process sends heartbeats with the same identity for the same node, those of the
  // older one are rejected with DUPLICATE_AGENT; its deliveries continue.
  void StartHeartbeats(HeartbeatWatcher watcher = {});
  // Sends a goodbye, so that the sender is not reported as lost; takes at most 2 s.
  void StopHeartbeats();
  // Returns OK while heartbeats are answered (or none was sent yet), otherwise the error.
  Status HeartbeatStatus() const;

  // Sets the phase for the next heartbeats. A change is sent soon, at most 4 times a second.
  // `message`: the reason why the sender waits, cut to 1024 characters.
  void SetPhase(Phase phase, const std::string& message = "");
  // Sets or clears the fault for the next heartbeats.
  void SetFault(const std::optional<Fault>& fault);
  // Returns the fleet's wall clock minus the local one, from the newest answer to a heartbeat;
  // nothing before the first.
  std::optional<std::chrono::milliseconds> ClockOffset() const;

  // Replaces Config::deadline for deliveries that begin later.
  void SetDeadline(std::chrono::system_clock::time_point deadline);

  // Works as a sidecar: waits for `results_dir`/done and delivers the file that it names; packs a
  // folder as results.tar.gz. An unusable done file leads to an error result with the reason. After
  // `stop` it waits for 60 s more, as legacy sidecars do, then returns kInterrupted; a delivery
  // that has begun gets the same time.
  Delivery WaitForDoneFileAndDeliver(const std::stop_token& stop = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLIENT_H_
