// A mutex, its scoped lock and condition variables that clang's thread safety analysis checks.
//
// Annotate with Abseil's macros: ABSL_GUARDED_BY(mutex_) on a member,
// ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) on a function that is called with the mutex held,
// ABSL_LOCKS_EXCLUDED(mutex_) on a function that acquires it and is called by others. An access
// without the lock does not compile.
//
// The types wrap std::mutex. absl::Mutex has the same annotations, but the thread sanitizer does
// not see its locks: they are inside Debian's library, which is not instrumented.
#ifndef MUSTER_SERVICES_COMMON_BASE_MUTEX_H_
#define MUSTER_SERVICES_COMMON_BASE_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"

namespace muster {

// A mutex that is not recursive. Use MutexLock instead of Lock and Unlock wherever a scope fits.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  [[nodiscard]] bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }

  // Tells the analysis that the mutex is held where it cannot know, as in a callback that the
  // holder runs. Nothing is checked at run time.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  friend class StoppableCondVar;

  std::mutex mutex_;
};

// Holds a mutex until the end of a scope; may release and acquire it in between.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_ = false;
    mutex_.Unlock();
  }
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// A condition variable. Every wait releases `mutex`, and acquires it again before it returns.
//
// Without a time limit, wait in a loop: `while (!ready_) changed_.Wait(mutex_);`. With one, pass
// the condition. The analysis looks at a lambda separately, so annotate it:
// `[this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ready_; }`.
class CondVar {
 public:
  CondVar() = default;
  CondVar(const CondVar&) = delete;
  CondVar& operator=(const CondVar&) = delete;

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  // Waits for a notification; may return without one.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // As Wait, for at most `limit`. Returns false if the time has passed.
  bool WaitFor(Mutex& mutex, absl::Duration limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // As Wait, until `deadline` at the latest. Returns false if the time has passed.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Waits until `ready` returns true, for at most `limit`. Returns what `ready` returned last.
  template <typename Condition>
  bool WaitFor(Mutex& mutex, absl::Duration limit, Condition ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  template <typename Condition>
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline, Condition ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable condition_;
};

// A condition variable whose waits also end when a stop is requested. It costs a lock and an
// allocation more than CondVar.
class StoppableCondVar {
 public:
  StoppableCondVar() = default;
  StoppableCondVar(const StoppableCondVar&) = delete;
  StoppableCondVar& operator=(const StoppableCondVar&) = delete;

  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

  // As CondVar::Wait.
  void Wait(Mutex& mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Waits until `ready` returns true or a stop is requested, for at most `limit`. Returns what
  // `ready` returned last.
  template <typename Condition>
  bool Wait(Mutex& mutex, const std::stop_token& stop, Condition ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  template <typename Condition>
  bool WaitFor(Mutex& mutex, const std::stop_token& stop, absl::Duration limit, Condition ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

 private:
  std::condition_variable_any condition_;
};

// Now plus `limit`, inside the range of the clock.
std::chrono::steady_clock::time_point SteadyDeadline(absl::Duration limit);

// The analysis cannot relate `mutex` to the one that a condition is annotated with.

template <typename Condition>
bool CondVar::WaitFor(Mutex& mutex, absl::Duration limit, Condition ready) {
  return WaitUntil(mutex, SteadyDeadline(limit), std::move(ready));
}

template <typename Condition>
bool CondVar::WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline,
                        Condition ready) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  while (!ready()) {
    if (!WaitUntil(mutex, deadline)) return ready();
  }
  return true;
}

template <typename Condition>
bool StoppableCondVar::Wait(Mutex& mutex, const std::stop_token& stop, Condition ready) {
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  const bool is = condition_.wait(lock, stop, std::move(ready));
  lock.release();
  return is;
}

template <typename Condition>
bool StoppableCondVar::WaitFor(Mutex& mutex, const std::stop_token& stop, absl::Duration limit,
                               Condition ready) {
  std::unique_lock lock(mutex.mutex_, std::adopt_lock);
  const bool is = condition_.wait_until(lock, stop, SteadyDeadline(limit), std::move(ready));
  lock.release();
  return is;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_MUTEX_H_
