// The measurement of a load sender, as one line of JSON for testing/benchmark.
#ifndef MUSTER_TESTING_LOAD_MEASUREMENT_H_
#define MUSTER_TESTING_LOAD_MEASUREMENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace muster::load {

// Returns bytes that do not compress, the same in every run.
std::string Incompressible(size_t size);

// Returns lines as of a log, with times, numbers and ids that differ; the same in every run.
std::string LogLines(size_t size);

// Calls `send(i)` for every i less than `count` from `senders` threads, each with the next i after
// its previous call. `send` returns an empty text or an error. Prints a line of JSON (seconds,
// count, failed, p50_ms, p99_ms, first_error) and returns the program's exit code.
int Measure(int64_t count, int senders,
            const std::function<std::string(int sender, int64_t i)>& send);

}  // namespace muster::load

#endif  // MUSTER_TESTING_LOAD_MEASUREMENT_H_
