#include "services/common/base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "services/common/base/mutex.h"

namespace muster {
namespace {

template <typename Handle>
struct NativeOf;
template <>
struct NativeOf<Counter> {
  using type = prometheus::Counter;
};
template <>
struct NativeOf<Gauge> {
  using type = prometheus::Gauge;
};
template <>
struct NativeOf<Histogram> {
  using type = prometheus::Histogram;
};

constexpr char kOther[] = "other";

double ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t total = 0;
  uint64_t resident = 0;
  in >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// 0 where the kernel does not tell: a process that others may not trace, and that is not root's.
double OpenFds() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  double count = 0;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    ++count;
  }
  return std::max(count - 1, 0.0);  // without the one that reads the folder
}

}  // namespace

void Counter::Add(double n) const { counter_->Increment(n); }
double Counter::value() const { return counter_->Value(); }
void Gauge::Set(double value) const { gauge_->Set(value); }
void Gauge::Add(double n) const { gauge_->Increment(n); }
double Gauge::value() const { return gauge_->Value(); }
void Histogram::Observe(double value) const { histogram_->Observe(value); }

template <typename Handle>
struct Labelled<Handle>::State {
  using Native = typename NativeOf<Handle>::type;

  prometheus::Family<Native>& family;
  const std::vector<std::string> labels;
  const size_t max_series;
  const std::function<Native&(prometheus::Family<Native>&, const prometheus::Labels&)> add;
  Mutex mutex;
  std::map<std::vector<std::string>, Native*> series ABSL_GUARDED_BY(mutex);
};

template <typename Handle>
Handle Labelled<Handle>::With(const std::vector<std::string>& values) const {
  MutexLock lock(state_->mutex);
  if (const auto found = state_->series.find(values); found != state_->series.end()) {
    return Handle(found->second);
  }
  std::vector<std::string> used = values;
  used.resize(state_->labels.size());
  if (state_->series.size() >= state_->max_series) used.assign(used.size(), kOther);
  prometheus::Labels labels;
  for (size_t i = 0; i < used.size(); ++i) labels.emplace(state_->labels[i], used[i]);
  auto* const metric = &state_->add(state_->family, labels);  // the same labels: the same metric
  if (state_->series.size() < state_->max_series) state_->series.emplace(values, metric);
  return Handle(metric);
}

template class Labelled<Counter>;
template class Labelled<Gauge>;
template class Labelled<Histogram>;

struct Metrics::Sampled {
  prometheus::MetricFamily family;
  std::function<double()> read;
};

struct Metrics::State {
  prometheus::Registry registry;
  mutable Mutex mutex;
  std::vector<Sampled> sampled ABSL_GUARDED_BY(mutex);
};

std::vector<double> LatencyBounds() {
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600};
}

Metrics::Metrics() : state_(std::make_unique<State>()) {}
Metrics::~Metrics() = default;

Counter Metrics::AddCounter(const std::string& name, const std::string& help) {
  return AddCounters(name, help, {}, 1).With({});
}

Gauge Metrics::AddGauge(const std::string& name, const std::string& help) {
  return AddGauges(name, help, {}, 1).With({});
}

Histogram Metrics::AddHistogram(const std::string& name, const std::string& help,
                                const std::vector<double>& bounds) {
  return AddHistograms(name, help, {}, 1, bounds).With({});
}

Labelled<Counter> Metrics::AddCounters(const std::string& name, const std::string& help,
                                       std::vector<std::string> labels, size_t max_series) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
  return Labelled<Counter>(std::make_shared<Labelled<Counter>::State>(
      family, std::move(labels), max_series,
      [](auto& f, const prometheus::Labels& l) -> prometheus::Counter& { return f.Add(l); }));
}

Labelled<Gauge> Metrics::AddGauges(const std::string& name, const std::string& help,
                                   std::vector<std::string> labels, size_t max_series) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(state_->registry);
  return Labelled<Gauge>(std::make_shared<Labelled<Gauge>::State>(
      family, std::move(labels), max_series,
      [](auto& f, const prometheus::Labels& l) -> prometheus::Gauge& { return f.Add(l); }));
}

Labelled<Histogram> Metrics::AddHistograms(const std::string& name, const std::string& help,
                                           std::vector<std::string> labels, size_t max_series,
                                           std::vector<double> bounds) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
  return Labelled<Histogram>(std::make_shared<Labelled<Histogram>::State>(
      family, std::move(labels), max_series,
      [bounds = std::move(bounds)](auto& f, const prometheus::Labels& l) -> prometheus::Histogram& {
        return f.Add(l, bounds);
      }));
}

void Metrics::AddSampledGauge(const std::string& name, const std::string& help,
                              std::function<double()> read) {
  MutexLock lock(state_->mutex);
  state_->sampled.push_back({{name, help, prometheus::MetricType::Gauge, {}}, std::move(read)});
}

void Metrics::AddSampledCounter(const std::string& name, const std::string& help,
                                std::function<double()> read) {
  MutexLock lock(state_->mutex);
  state_->sampled.push_back({{name, help, prometheus::MetricType::Counter, {}}, std::move(read)});
}

void Metrics::AddProcessMetrics() {
  AddSampledGauge("process_resident_memory_bytes", "Memory in use.", ResidentBytes);
  AddSampledCounter("process_cpu_seconds_total", "Processor time used.", CpuSeconds);
  AddSampledGauge("process_open_fds", "Open file descriptors.", OpenFds);
  const double start = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  AddSampledGauge("process_start_time_seconds", "Start time of the process, in Unix time.",
                  [start] { return start; });
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = state_->registry.Collect();
  {
    MutexLock lock(state_->mutex);
    for (const Sampled& sampled : state_->sampled) {
      prometheus::ClientMetric metric;
      const double value = sampled.read();
      metric.gauge.value = value;
      metric.counter.value = value;
      families.push_back(sampled.family);
      families.back().metric.push_back(std::move(metric));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace muster
