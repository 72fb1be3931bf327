// Metrics for Prometheus.
//
// Metrics are created once at start and used by handles. A handle is cheap to copy and valid as
// long as its Metrics. Names follow Prometheus's rules: muster_<what>_<unit>, counters end in
// _total.
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

// A sum that only increases. Thread-safe.
class Counter {
 public:
  explicit Counter(prometheus::Counter* counter) : counter_(counter) {}
  void Add(double n = 1) const;
  double value() const;

 private:
  prometheus::Counter* counter_;
};

// A value that increases and decreases. Thread-safe.
class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* gauge) : gauge_(gauge) {}
  void Set(double value) const;
  void Add(double n) const;
  double value() const;

 private:
  prometheus::Gauge* gauge_;
};

// A distribution of values over buckets. Thread-safe.
class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* histogram) : histogram_(histogram) {}
  void Observe(double value) const;

 private:
  prometheus::Histogram* histogram_;
};

// Metrics of one name with different labels, at most `max_series`: further ones are counted as
// "other", so that peers cannot increase the memory. Thread-safe, cheap to copy. Keep the handle
// where the labels are constant: With acquires a lock.
template <typename Handle>
class Labelled {
 public:
  struct State;
  explicit Labelled(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Returns the metric with one value for each label name, in their order.
  Handle With(const std::vector<std::string>& values) const;

 private:
  std::shared_ptr<State> state_;
};

// Returns the buckets for durations of operations in seconds: from a cached read to ten minutes.
std::vector<double> LatencyBounds();

// All metrics of one process. Thread-safe. A name may be used once; a name or label that Prometheus
// does not allow ends the process, since only a programmer can choose it.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  Counter AddCounter(const std::string& name, const std::string& help);
  Gauge AddGauge(const std::string& name, const std::string& help);
  // `bounds`: the upper bounds of the buckets, ascending; one without a bound is added.
  Histogram AddHistogram(const std::string& name, const std::string& help,
                         const std::vector<double>& bounds);

  Labelled<Counter> AddCounters(const std::string& name, const std::string& help,
                                std::vector<std::string> labels, size_t max_series);
  Labelled<Gauge> AddGauges(const std::string& name, const std::string& help,
                            std::vector<std::string> labels, size_t max_series);
  Labelled<Histogram> AddHistograms(const std::string& name, const std::string& help,
                                    std::vector<std::string> labels, size_t max_series,
                                    std::vector<double> bounds);

  // Add a metric whose value `read` returns each time the metrics are read, on any thread.
  void AddSampledGauge(const std::string& name, const std::string& help,
                       std::function<double()> read);
  void AddSampledCounter(const std::string& name, const std::string& help,
                         std::function<double()> read);

  // Adds process_resident_memory_bytes, process_cpu_seconds_total, process_open_fds and
  // process_start_time_seconds, under the names that all Prometheus clients use.
  void AddProcessMetrics();

  // Returns all metrics in Prometheus's text format 0.0.4.
  std::string Text() const;

 private:
  struct Sampled;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_METRICS_H_
