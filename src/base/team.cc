#include "base/team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/threads.h"

namespace linblock {

namespace {

// A thread that sleeps too early costs a wake-up, which is longer than a short phase. About 50 microseconds.
constexpr int kPausesOfATeamWithCores = 3000;
constexpr int kPausesOfACrowd = 100;

void pause_shortly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// A phase is one call of for_each. Its number, its pieces and the next one to claim are one word, so that nobody can
// claim a piece of a phase that is over.
constexpr unsigned kPieceBits = 20;
constexpr uint64_t kPieceMask = (uint64_t{1} << kPieceBits) - 1;
constexpr size_t kMostPieces = kPieceMask;

uint64_t ticket_of(uint64_t phase, uint64_t pieces) { return phase << 2 * kPieceBits | pieces << kPieceBits; }
uint64_t pieces_of(uint64_t ticket) { return ticket >> kPieceBits & kPieceMask; }
uint64_t next_of(uint64_t ticket) { return ticket & kPieceMask; }

constexpr unsigned kOwnedBits = 8;
constexpr uint64_t kOwnedMask = (uint64_t{1} << kOwnedBits) - 1;
static_assert(kMostOwners <= kOwnedMask);

}  // namespace

class Team::Threads {
 public:
  Threads(size_t threads, size_t owners, size_t cores)
      : size_(std::max<size_t>(1, threads)),
        owners_(std::min(kMostOwners, owners > 0 ? owners : std::min(size_, cores))),
        pauses_(size_ > cores ? kPausesOfACrowd : kPausesOfATeamWithCores),
        busy_(std::max<size_t>(2, size_)) {}

  ~Threads() {
    ended_ = true;
    wake();
  }

  size_t size() const { return size_; }
  size_t owners() const { return owners_; }

  void start() {
    std::call_once(started_, [this] {
      for (size_t number = 1; number < busy_.size(); ++number) threads_.emplace_back([this, number] { live(number); });
    });
  }

  void for_each(size_t count, const std::function<void(size_t)>& work, const std::function<void()>* lead = nullptr) {
    if (count == 0 || inside == this || size_ == 1 || (count == 1 && lead == nullptr)) {
      if (lead != nullptr) (*lead)();
      for (size_t number = 0; number < count; ++number) work(number);
      return;
    }
    start();
    const std::lock_guard one_phase_at_a_time(phase_mutex_);
    const size_t piece = (count + kMostPieces - 1) / kMostPieces;
    const auto do_piece = [&](size_t number) {
      for (size_t i = number * piece; i < std::min(count, (number + 1) * piece); ++i) work(i);
    };
    run_phase((count + piece - 1) / piece, do_piece, lead);
  }

  void for_each_owned(size_t count, const std::function<void(size_t)>& work) {
    if (inside == this || size_ == 1 || count == 1) {
      for (size_t number = 0; number < count; ++number) work(number);
      return;
    }
    start();
    const std::lock_guard one_phase_at_a_time(phase_mutex_);
    begin_phase(work);
    owned_ = ++phase_ << kOwnedBits | count;
    wake();
    claim_owned(0);
    end_phase(count);
    owned_ = 0;
    rethrow_failure();
  }

  void add(Background& background) {
    start();
    {
      const std::lock_guard lock(background_mutex_);
      backgrounds_.push_back({&background, 0});
    }
    wake_for_background();
  }

  void remove(Background& background) {
    std::unique_lock lock(background_mutex_);
    const auto find_entry = [&] {
      return std::find_if(backgrounds_.begin(), backgrounds_.end(),
                          [&](const BackgroundEntry& entry) { return entry.background == &background; });
    };
    if (find_entry() == backgrounds_.end()) return;
    find_entry()->leaving = true;
    background_done_.wait(lock, [&] { return find_entry()->steps == 0; });
    backgrounds_.erase(find_entry());
  }

  void wake_for_background() {
    ++background_calls_;
    wake();
  }
  void wake() {
    ++signal_;
    signal_.notify_all();
  }

  std::vector<Busy> busy() const {
    std::vector<Busy> all;
    for (size_t i = 0; i < std::max<size_t>(1, busy_.size()); ++i)
      all.push_back(
          {busy_[i].pieces.load(std::memory_order_relaxed), busy_[i].background.load(std::memory_order_relaxed)});
    return all;
  }

 private:
  struct BackgroundEntry {
    Background* background = nullptr;
    size_t steps = 0;  // being made
    bool leaving = false;
  };
  struct alignas(64) Times {
    std::atomic<double> pieces = 0;
    std::atomic<double> background = 0;
  };

  static void add_to(std::atomic<double>& sum, double seconds) {
    sum.store(sum.load(std::memory_order_relaxed) + seconds, std::memory_order_relaxed);  // of this thread alone
  }

  void run_phase(size_t pieces, const std::function<void(size_t)>& work, const std::function<void()>* lead) {
    begin_phase(work);
    ticket_ = ticket_of(++phase_, pieces);
    wake();
    std::exception_ptr failure;
    try {
      if (lead != nullptr) (*lead)();
    } catch (...) {
      failure = std::current_exception();
      failed_ = true;  // pieces that nobody has begun are left out
    }
    claim_pieces(0);
    end_phase(pieces);
    if (failure) std::rethrow_exception(failure);
    rethrow_failure();
  }

  void begin_phase(const std::function<void(size_t)>& work) {
    work_ = &work;
    failed_ = false;
    failure_ = nullptr;
    done_ = 0;
  }
  void end_phase(size_t pieces) {
    for (int pauses = 0; done_ != pieces; ++pauses) {
      if (pauses < pauses_) {
        pause_shortly();
        continue;
      }
      const uint32_t seen = done_;
      if (seen != pieces) done_.wait(seen);
    }
  }
  void rethrow_failure() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  // Whoever sets the claim on a piece to this phase does it. A claim that is older says that the piece is not done, and
  // so that the phase is not over.
  bool claim_owned(size_t thread) {
    const uint64_t owned = owned_;
    const size_t count = owned & kOwnedMask;
    const uint64_t phase = owned >> kOwnedBits;
    if (count == 0) return false;
    const Stopwatch working;
    const Threads* const outside = std::exchange(inside, this);
    bool worked = false;
    for (size_t i = 0; i < count; ++i) {
      const size_t piece = (thread + i) % count;
      uint64_t claim = claims_[piece].phase;
      while (claim < phase && !claims_[piece].phase.compare_exchange_weak(claim, phase)) continue;
      if (claim >= phase) continue;
      worked = true;
      do_piece(piece);
      if (++done_ == count) done_.notify_all();
    }
    inside = outside;
    if (worked) add_to(busy_[thread].pieces, working.seconds());
    return worked;
  }

  // False: there was none.
  bool claim_pieces(size_t thread) {
    uint64_t ticket = ticket_;
    if (next_of(ticket) == pieces_of(ticket)) return false;
    const Stopwatch working;
    const Threads* const outside = std::exchange(inside, this);
    bool worked = false;
    while (next_of(ticket) < pieces_of(ticket)) {
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1)) continue;
      worked = true;
      do_piece(next_of(ticket));
      if (++done_ == pieces_of(ticket)) done_.notify_all();
      ticket = ticket_;
    }
    inside = outside;
    if (worked) add_to(busy_[thread].pieces, working.seconds());
    return worked;
  }

  void do_piece(size_t number) {
    if (failed_) return;
    try {
      (*work_)(number);
    } catch (...) {
      const std::lock_guard lock(failure_mutex_);
      failed_ = true;
      if (failure_ == nullptr || number < failed_number_) {
        failure_ = std::current_exception();
        failed_number_ = number;
      }
    }
  }

  void live(size_t thread) {
    while (true) {
      const uint32_t signal = signal_;
      if (ended_) return;
      if (step_in_background(thread)) continue;
      if (thread < size_ && (claim_owned(thread) || claim_pieces(thread))) continue;
      for (int pauses = 0; pauses < pauses_ && signal_ == signal; ++pauses) pause_shortly();
      signal_.wait(signal);
    }
  }

  // Threads look here between any two pieces, so that they must not queue for a lock to find nothing.
  bool step_in_background(size_t thread) {
    const uint64_t calls = background_calls_;
    if (calls == background_idle_at_) return false;
    std::unique_lock lock(background_mutex_);
    for (size_t i = 0; i < backgrounds_.size(); ++i) {
      if (backgrounds_[i].leaving) continue;
      Background* const background = backgrounds_[i].background;
      ++backgrounds_[i].steps;
      lock.unlock();
      const Stopwatch working;
      const bool worked = background->step();
      if (worked) add_to(busy_[thread].background, working.seconds());
      lock.lock();
      // Others may have come and gone.
      const auto place = std::find_if(backgrounds_.begin(), backgrounds_.end(),
                                      [&](const BackgroundEntry& entry) { return entry.background == background; });
      if (--place->steps == 0 && place->leaving) background_done_.notify_all();
      if (worked) return true;
      i = static_cast<size_t>(place - backgrounds_.begin());
    }
    background_idle_at_ = calls;  // unless somebody has called meanwhile
    return false;
  }

  struct alignas(64) Claim {
    std::atomic<uint64_t> phase = 0;
  };

  static thread_local const Threads* inside;  // of which team this thread does a piece

  const size_t size_;
  const size_t owners_;
  const int pauses_;
  std::once_flag started_;
  std::vector<Times> busy_;
  std::atomic<uint32_t> signal_ = 0;  // counts whatever there is to wake up for
  std::atomic<bool> ended_ = false;
  // The phase in work.
  std::mutex phase_mutex_;
  uint64_t phase_ = 0;
  std::atomic<uint64_t> ticket_ = 0;
  std::atomic<uint64_t> owned_ = 0;  // of for_each_owned: the phase, and how many pieces
  std::array<Claim, kMostOwners> claims_;
  std::atomic<uint32_t> done_ = 0;
  const std::function<void(size_t)>* work_ = nullptr;
  std::atomic<bool> failed_ = false;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  size_t failed_number_ = 0;
  std::atomic<uint64_t> background_calls_ = 0;    // there is, or was, something to do
  std::atomic<uint64_t> background_idle_at_ = 0;  // after so many calls there was nothing left
  std::mutex background_mutex_;
  std::condition_variable background_done_;
  std::vector<BackgroundEntry> backgrounds_;
  std::vector<std::jthread> threads_;  // last: they end before what they use goes away
};

thread_local const Team::Threads* Team::Threads::inside = nullptr;

Team::Team(size_t threads, size_t owners) : state_(std::make_shared<Threads>(threads, owners, available_threads())) {}
size_t Team::size() const { return state_->size(); }
size_t Team::owners() const { return state_->owners(); }
void Team::for_each(size_t count, const std::function<void(size_t)>& work) const { state_->for_each(count, work); }
void Team::for_each(size_t count, const std::function<void(size_t)>& work, const std::function<void()>& lead) const {
  state_->for_each(count, work, &lead);
}
void Team::for_each_owned(size_t count, const std::function<void(size_t)>& work) const {
  state_->for_each_owned(count, work);
}
void Team::for_ranges(size_t count, size_t piece, const std::function<void(size_t, size_t)>& work) const {
  state_->for_each((count + piece - 1) / piece,
                   [&](size_t number) { work(number * piece, std::min(count, (number + 1) * piece)); });
}
void Team::run_loops(size_t count, const std::function<void()>& loop, const std::function<void()>& on_failure) const {
  std::once_flag told;
  for_each(count, [&](size_t) {
    try {
      loop();
    } catch (...) {
      std::call_once(told, on_failure);
      throw;
    }
  });
}
void Team::add(Background& background) const { state_->add(background); }
void Team::remove(Background& background) const { state_->remove(background); }
void Team::wake() const { state_->wake_for_background(); }
std::vector<Team::Busy> Team::busy() const { return state_->busy(); }

}  // namespace linblock
