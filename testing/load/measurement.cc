#include "testing/load/measurement.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <random>
#include <thread>

#include "nlohmann/json.hpp"
#include "services/common/base/mutex.h"

namespace muster::load {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

double Percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(part * sorted.size()))];
}

}  // namespace

std::string Incompressible(size_t size) {
  std::mt19937_64 random(1);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&bytes[i], &word, std::min(sizeof word, size - i));
  }
  return bytes;
}

namespace {

// The results of the senders.
struct Found {
  Mutex mutex;
  std::vector<double> latencies ABSL_GUARDED_BY(mutex);
  int64_t failed ABSL_GUARDED_BY(mutex) = 0;
  std::string first_error ABSL_GUARDED_BY(mutex);
};

}  // namespace

std::string LogLines(size_t size) {
  constexpr const char* kEvents[] = {"started container", "pulled image",
                                     "probe failed: connection refused", "volume mounted",
                                     "sync of pod took longer than expected"};
  std::mt19937_64 random(1);
  std::string lines;
  lines.reserve(size + 256);
  for (int64_t line = 0; lines.size() < size; ++line) {
    const uint64_t word = random();
    char text[256];
    std::snprintf(text, sizeof text,
                  "2026-11-23T08:%02d:%02d.%06dZ INFO kubelet[%d] pod=app-%d-%08x node=node-%03d "
                  "%s in %d ms\n",
                  static_cast<int>(line / 60000 % 60), static_cast<int>(line / 1000 % 60),
                  static_cast<int>(word % 1000000), 1234, static_cast<int>(word >> 20 & 63),
                  static_cast<unsigned>(word >> 32), static_cast<int>(word >> 26 & 127),
                  kEvents[word % std::size(kEvents)], static_cast<int>(word >> 40 & 4095));
    lines += text;
  }
  lines.resize(size);
  return lines;
}

int Measure(int64_t count, int senders,
            const std::function<std::string(int sender, int64_t i)>& send) {
  std::atomic<int64_t> next = 0;
  Found found;
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> threads;
  for (int sender = 0; sender < senders; ++sender) {
    threads.emplace_back([&, sender] {
      for (int64_t i = next++; i < count; i = next++) {
        const Clock::time_point start = Clock::now();
        const std::string error = send(sender, i);
        const double latency = Milliseconds(Clock::now() - start);
        MutexLock lock(found.mutex);
        found.latencies.push_back(latency);
        if (error.empty()) continue;
        ++found.failed;
        if (found.first_error.empty()) found.first_error = error;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double seconds = Milliseconds(Clock::now() - begin) / 1000;
  MutexLock lock(found.mutex);
  std::sort(found.latencies.begin(), found.latencies.end());
  std::cout << nlohmann::json{{"seconds", seconds},
                              {"count", count},
                              {"failed", found.failed},
                              {"first_error", found.first_error},
                              {"p50_ms", Percentile(found.latencies, 0.50)},
                              {"p99_ms", Percentile(found.latencies, 0.99)}}
            << "\n";
  return found.failed == 0 ? 0 : 1;
}

}  // namespace muster::load
