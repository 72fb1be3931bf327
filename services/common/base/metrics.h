// Figures for Prometheus.
//
// Metrics are made once at start and kept as handles; a handle is cheap to copy and valid as long
// as its Metrics. Names follow Prometheus's rules: muster_<what>_<unit>, counters end in _total.
#ifndef MUSTER_SERVICES_COMMON_BASE_METRICS_H_
#define MUSTER_SERVICES_COMMON_BASE_METRICS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace muster {

// A sum that only grows. Thread-safe.
class Counter {
 public:
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  void Add(double n = 1) const;
  double value() const;

 private:
  prometheus::Counter* counter_;
};

// A figure that rises and falls. Thread-safe.
class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void Set(double value) const;
  void Add(double n) const;
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

// How values spread over buckets. Thread-safe.
class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* histogram_;
};

// Metrics of one name told apart by labels, at most `max_series` of them: what comes after counts
// under "other", so that no peer can make memory grow. Thread-safe, cheap to copy. Keep the handle
// where the labels are known beforehand: With takes a lock.
template <typename Handle>
class Labelled {
 public:
  struct State;
  explicit Labelled(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // One value for each label name, in their order.
  Handle With(const std::vector<std::string>& values) const;

 private:
  std::shared_ptr<State> state_;
};

// Buckets for the time that an operation takes, in seconds: from a cached read to ten minutes.
std::vector<double> LatencyBounds();

// All metrics of one process. Thread-safe. A name may be used once; a name or label that Prometheus
// does not allow ends the process, since only a programmer can choose it.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  Counter AddCounter(const std::string& name, const std::string& help);
  Gauge AddGauge(const std::string& name, const std::string& help);
  // `bounds` are the buckets' upper ends, ascending; one without end is added.
  Histogram AddHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds);

  Labelled<Counter> AddCounters(const std::string& name, const std::string& help,
                                std::vector<std::string> labels, size_t max_series);
  Labelled<Gauge> AddGauges(const std::string& name, const std::string& help,
                            std::vector<std::string> labels, size_t max_series);
  Labelled<Histogram> AddHistograms(const std::string& name, const std::string& help,
                                    std::vector<std::string> labels, size_t max_series,
                                    std::vector<double> bounds);

  // Read each time the metrics are; `read` is called on any thread and must outlast this object.
  void AddSampledGauge(const std::string& name, const std::string& help,
                       std::function<double()> read);
  void AddSampledCounter(const std::string& name, const std::string& help,
                         std::function<double()> read);

  // process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds and
  // process_start_time_seconds, under the names that all Prometheus clients use.
  void AddProcessMetrics();

  // Everything in Prometheus's text format 0.0.4.
  std::string Text() const;

 private:
  struct Sampled;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_METRICS_H_
