// Delivers results to a Muster fleet: for authors of plugins, sidecars and agents.
//
//   muster::client::Status status;
//   auto client = muster::client::Client::Create(
//       *muster::client::Config::Load("node.json", &status), &status);
//   auto delivery = client->SubmitFile("/tmp/results/facts.json", {});
//   return static_cast<int>(delivery.status.code);
//
// The promise: a delivery that succeeds is committed; it survives the loss of any process and of
// power. Until then the client tries again: over lost connections, restarts of the service and,
// with `Config::state_dir`, restarts of this process, from the byte that was reached. Keep your
// file until then. No file is ever held in memory.
//
// The library changes nothing that belongs to the process: no environment, no signal handlers, no
// global settings. It logs nothing; what happened is in the Status.
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

// How an operation ended. The values are the exit codes of `muster agent` and `muster submit`.
enum class Code {
  kOk = 0,
  kFailed = 1,           // none of the others; the message says what
  kBadConfig = 2,        // the configuration or an argument is wrong: nothing was tried
  kErrorDelivered = 10,  // there is no genuine result, and the fleet was told why
  kRefused = 11,         // this identity may not deliver this result, or nobody planned it
  kConflict = 12,        // another content is committed already; it stays
  kRunEnded = 13,        // the run is sealed, cancelled or gone
  kDeadline = 14,        // the time was over before the result was committed
  kInterrupted = 15,     // asked to stop before the result was committed
  kHandedOver = 16,  // a relay holds the result, and delivers it when it has a way to the centre
};

// What happened. A value.
struct Status {
  Code code = Code::kOk;
  // For programs: UPPER_SNAKE_CASE, listed in docs/errors.md. Empty when all is well.
  std::string reason;
  // What happened, and to what.
  std::string message;
  // What to do now; may be empty.
  std::string next_step;

  bool ok() const { return code == Code::kOk; }
};

// Where to deliver, as whom, and how long to try. The same fields, under the same names, as in the
// JSON file that `muster credentials export` writes (docs/agent.md lists them).
struct Config {
  // "host:port" of Muster's API; tried in turn.
  std::vector<std::string> grpc_targets;
  // The same for progress.
  std::vector<std::string> status_targets;
  // "https://host:port" of the run's listener for old clients; used if `grpc_targets` is empty.
  std::string aggregator_url;
  std::string run;
  std::string plugin;
  // "global" for a plugin that runs once.
  std::string node;
  // PEM: the fleet's root, for grpc_targets; the run's authority, for aggregator_url.
  std::string fleet_ca_cert;
  std::string ca_cert;
  // PEM: the certificate, then what leads to the fleet's root.
  std::string client_cert;
  // PEM, or the path of a file with it.
  std::string client_key;
  std::string client_key_file;
  // Instead of these and fleet_ca_cert, for grpc_targets: a folder with key.pem, cert.pem and
  // ca.pem, which somebody renews while this works, all three at once (a renamed symbolic link).
  // Not in the file nor the environment.
  std::string identity_folder;
  // Where the done file appears (WaitForDoneFileAndDeliver).
  std::string results_dir = "/tmp/sonobuoy/results";
  // How long a done file has to stay before it is believed.
  std::chrono::milliseconds done_file_delay{5000};
  // A folder for what must survive this process; empty: a restart sends everything again.
  std::string state_dir;
  // When to give up, if the certificate does not end earlier.
  std::optional<std::chrono::system_clock::time_point> deadline;
  // Be content (kHandedOver) when a relay without a way to the centre has taken the result: it then
  // delivers by itself. Keep your file all the same. Otherwise the delivery waits until it is
  // committed.
  bool leave_when_spooled = false;
  // The largest result, in bytes; above it an error result goes in its place.
  int64_t max_result_bytes = int64_t{1} << 40;

  // From a JSON file; variables of the environment win over it (docs/agent.md, "Environment").
  // Without a path from the environment alone. Nothing, and the reason in `*status`, if that is not
  // a configuration: an unknown field is an error that names the nearest known one.
  static std::optional<Config> Load(const std::string& path, Status* status);
  static std::optional<Config> FromEnvironment(Status* status);
};

// What is committed. A value.
struct Receipt {
  // 1 for the first outcome of the (plugin, node); each replacement adds 1. 0 if the service did
  // not say (old listeners).
  int64_t generation = 0;
  int64_t size = 0;
  std::string sha256;  // lower-case hex
};

struct Delivery {
  Status status;
  Receipt receipt;  // of an OK status, and of kErrorDelivered
};

// What to say of a result besides its bytes.
struct SubmitOptions {
  // Empty: by the ending of the file name.
  std::string media_type;
  // Empty: the file's own.
  std::string file_name;
};

// What a plugin says of its own progress (Sonobuoy's fields).
struct Progress {
  std::string message;
  int64_t total = 0;
  int64_t completed = 0;
  std::vector<std::string> failures;
  std::vector<std::string> errors;
  // The append form: adds to what was reported before.
  bool append_totals = false;
  int64_t append_completed = 0;
  std::vector<std::string> append_failing;
};

// What a sender is at, as its heartbeats tell it.
enum class Phase {
  kChecking = 1,       // checks before the work
  kWorking = 2,        // the usual one
  kWaiting = 3,        // for the plugin's done file
  kDelivering = 4,     // told by itself
  kBlocked = 5,        // waits for something that is not the plugin's own
  kBackpressured = 6,  // the fleet told it to wait; told by itself
};

// What was found to stand in the way of the work.
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
  // What went wrong, and what to do; at most 1024 characters each count.
  std::string message;
  std::string next_step;
};

// Hears how heartbeats fare: an error when they do not get through any more (each such time once),
// OK when they do again, DUPLICATE_AGENT when they have ended for good. Called from a thread of the
// library; must not block, nor call StartHeartbeats or StopHeartbeats.
using HeartbeatWatcher = std::function<void(const Status& status)>;

// Fills `buffer` with up to `size` bytes; returns how many, 0 at the end, less than 0 on an error.
using Reader = std::function<std::ptrdiff_t(char* buffer, size_t size)>;

// Delivers the result of one (run, plugin, node). Thread-safe; one delivery at a time, others wait.
// Every call blocks until its outcome is known, the deadline, or `stop`.
class Client {
 public:
  // Nothing, and the reason in `*status`, if the configuration cannot work: a field is missing, key
  // and certificate do not match, the certificate is past. Opens no connection yet.
  static std::unique_ptr<Client> Create(const Config& config, Status* status);
  ~Client();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Delivers a regular file. If it changes while it is read, an error result goes in its place
  // (kErrorDelivered), never a mixture.
  Delivery SubmitFile(const std::string& path, const SubmitOptions& options,
                      const std::stop_token& stop = {});

  // Delivers what `reader` gives. It is written to a nameless temporary file first (in state_dir,
  // else $TMPDIR, else /var/tmp), so that every loss can be survived. An error of the reader is
  // delivered as an error result.
  Delivery SubmitStream(const Reader& reader, const SubmitOptions& options,
                        const std::stop_token& stop = {});

  // Says that there is no result, and why (kErrorDelivered if that arrived). A genuine result may
  // still follow until the run is sealed. At most 64 KiB count; the rest is cut.
  Delivery SubmitError(const std::string& text, const std::stop_token& stop = {});

  // One try, at most 10 s: progress is advice, and the next report replaces this one. One that did
  // not get through goes with the next heartbeat, if it is not of the append form.
  Status ReportProgress(const Progress& progress);

  // Tells the fleet from now on that somebody is at work, until StopHeartbeats or the end of this
  // client: then a sender that ends without a word is missed within minutes, with the reason.
  // Returns at once; it runs in a thread of its own, at the pace that the fleet asks for, and never
  // fails or delays a delivery. It does nothing without status_targets, or aggregator_url, to tell.
  // Over aggregator_url it is a bare sign of life.
  //
  // If another process beats with the same identity, for the same node, the older one's heartbeats
  // end for good with DUPLICATE_AGENT; its deliveries go on.
  void StartHeartbeats(HeartbeatWatcher watcher = {});
  // Says goodbye, so that nobody is missed; takes at most 2 s.
  void StopHeartbeats();
  // OK while heartbeats get through (or none was tried yet); else why not.
  Status HeartbeatStatus() const;

  // What the next heartbeats say; sent soon if it is news, at most 4 times a second. `message`:
  // what is waited for; at most 1024 characters count.
  void SetPhase(Phase phase, const std::string& message = "");
  // Nothing: nothing stands in the way.
  void SetFault(const std::optional<Fault>& fault);
  // The fleet's wall clock minus ours, by the newest answer to a heartbeat; nothing before the
  // first.
  std::optional<std::chrono::milliseconds> ClockOffset() const;

  // Replaces Config::deadline, for deliveries that begin after it.
  void SetDeadline(std::chrono::system_clock::time_point deadline);

  // The whole life of a sidecar: waits for `results_dir`/done, delivers the file it names, a folder
  // as results.tar.gz. A done file that names nothing usable gives an error result with the reason.
  // After `stop` it goes on waiting for 60 s, as old sidecars do, then gives kInterrupted; a
  // delivery that has begun goes on for as long.
  Delivery WaitForDoneFileAndDeliver(const std::stop_token& stop = {});

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_CLIENT_H_
