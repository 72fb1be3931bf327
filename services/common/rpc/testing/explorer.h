#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_EXPLORER_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_EXPLORER_H_

#include <cstddef>
#include <random>
#include <vector>

namespace muster::testing {

// Enumerates the runs of a test that makes choices: each run makes the same choices as the one
// before, up to the last that still has an untried alternative. After `depth` choices a run has to
// end automatically.
class Explorer {
 public:
  explicit Explorer(size_t depth) : depth_(depth) {}

  // Begins the next run; false when all runs have been made.
  bool Next() {
    if (runs_++ == 0) return true;
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().of) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    at_ = 0;
    return true;
  }

  // Returns whether this run may make another choice.
  bool More() const { return at_ < depth_; }

  // One of `alternatives`, from 0.
  size_t Choose(size_t alternatives) {
    if (at_ == choices_.size()) choices_.push_back({0, alternatives});
    return choices_[at_++].taken;
  }

  int runs() const { return runs_ - 1; }

 private:
  struct Choice {
    size_t taken;
    size_t of;
  };
  const size_t depth_;
  std::vector<Choice> choices_;
  size_t at_ = 0;
  int runs_ = 0;
};

// The same choices by chance, from a fixed seed, for runs that are too long to enumerate. The last
// alternative is chosen seldom: put there what ends a run.
class RandomWalk {
 public:
  RandomWalk(size_t runs, size_t depth) : left_(runs), depth_(depth) {}

  bool Next() {
    at_ = 0;
    return left_-- > 0;
  }
  bool More() const { return at_ < depth_; }
  size_t Choose(size_t alternatives) {
    ++at_;
    return random_() % (random_() % 16 == 0 || alternatives == 1 ? alternatives : alternatives - 1);
  }

 private:
  std::mt19937 random_{20260101};
  size_t left_;
  const size_t depth_;
  size_t at_ = 0;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_EXPLORER_H_
