// PersistentRepr: an event as it is handed to a journal. AtomicWrite: events of one persistence id
// that are stored together or not at all.
//
//   PersistentRepr event{.persistence_id = "account-7", .sequence_nr = 12, .manifest = "deposited", .payload = bytes};
//   absl::StatusOr<AtomicWrite> write = AtomicWrite::Make({event, event.WithSequenceNr(13)});
//
// A journal deals in bytes. What the bytes mean is said by the manifest, an explicit and stable
// name, and its version: whoever wrote the event must find a decoder by them years later, so a C++
// type name will not do.
//
// Thread safety: values. Copies of an AtomicWrite share its events, which do not change.
//
// Costs: a copy of an AtomicWrite is one atomic read-modify-write. The memory of the last few of
// one event that ended on a thread is used again for the next ones that are filled there.
#ifndef FRAKTOR_PERSISTENCE_JOURNAL_PERSISTENT_REPR_H_
#define FRAKTOR_PERSISTENCE_JOURNAL_PERSISTENT_REPR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {

// Who wrote an event: drawn anew by each incarnation of an actor, so that events of two writers
// that both believed to be the only one can be told apart. 128 random bits; all zero means that
// nobody said.
struct WriterId {
  uint64_t high = 0;
  uint64_t low = 0;

  static WriterId Draw(Random& random);
  // The inverse of ToString; none if `text` is anything else.
  static std::optional<WriterId> Parse(std::string_view text);

  bool is_none() const { return high == 0 && low == 0; }
  // 32 hexadecimal digits, or nothing if there is no writer.
  std::string ToString() const;

  friend bool operator==(const WriterId&, const WriterId&) = default;
};

// The epoch of a request that names no owner. It is below every epoch that a store gives.
inline constexpr uint64_t kNoEpoch = 0;

struct PersistentRepr {
  std::string persistence_id = {};
  uint64_t sequence_nr = 0;  // from 1
  WriterId writer = {};
  // The epoch that JournalStorage::OpenWriter answered. kNoEpoch for an id that was never opened.
  uint64_t epoch = kNoEpoch;
  // When the event was made, in whole nanoseconds. A PersistentActor says it to some milliseconds.
  absl::Time timestamp = absl::UnixEpoch();
  std::string manifest = {};
  uint32_t manifest_version = 0;
  std::string payload = {};
  // What queries find the event by. Not empty, and each once.
  std::vector<std::string> tags = {};
  // Bytes that go with the event and are not part of it.
  std::string metadata = {};

  // Copies with one thing changed.
  PersistentRepr WithPersistenceId(std::string changed) const;
  PersistentRepr WithSequenceNr(uint64_t changed) const;
  PersistentRepr WithWriter(WriterId changed) const;
  PersistentRepr WithEpoch(uint64_t changed) const;
  PersistentRepr WithTimestamp(absl::Time changed) const;
  PersistentRepr WithManifest(std::string changed, uint32_t changed_version = 0) const;
  PersistentRepr WithPayload(std::string changed) const;
  PersistentRepr WithTags(std::vector<std::string> changed) const;
  PersistentRepr WithMetadata(std::string changed) const;

  // What the event counts for against limits: all its bytes of variable length.
  size_t ByteSize() const;

  friend bool operator==(const PersistentRepr&, const PersistentRepr&) = default;
};

class AtomicWrite {
 public:
  using Events = absl::InlinedVector<PersistentRepr, 1>;

  // None: only to be assigned to.
  AtomicWrite() = default;
  AtomicWrite(const AtomicWrite& other) noexcept : held_(other.held_), known_stored_(other.known_stored_) {
    // Relaxed: nothing is read because of it.
    if (held_ != nullptr) held_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  AtomicWrite(AtomicWrite&& other) noexcept
      : held_(std::exchange(other.held_, nullptr)), known_stored_(other.known_stored_) {}
  AtomicWrite& operator=(AtomicWrite other) noexcept {
    std::swap(held_, other.held_);
    std::swap(known_stored_, other.known_stored_);
    return *this;
  }
  ~AtomicWrite() {
    if (held_ != nullptr) LetGo();
  }

  // InvalidArgument (kInvalid) unless there is at least one event, all have the same persistence
  // id, epoch and writer, and the numbers rise by one from a first that is not 0.
  static absl::StatusOr<AtomicWrite> Make(Events events);
  // One event. The same conditions.
  static absl::StatusOr<AtomicWrite> Make(PersistentRepr event);
  // The same for `count` events that are made where they stay: `fill(i, event)` sets each. What it
  // fails with is the answer.
  using Filler = absl::FunctionRef<absl::Status(size_t i, PersistentRepr& event)>;
  static absl::StatusOr<AtomicWrite> Fill(size_t count, Filler fill);

  bool is_none() const { return held_ == nullptr; }

  // Not of none.
  const std::string& persistence_id() const { return events().front().persistence_id; }
  uint64_t lowest_sequence_nr() const { return events().front().sequence_nr; }
  uint64_t highest_sequence_nr() const { return events().back().sequence_nr; }
  uint64_t epoch() const { return events().front().epoch; }
  const Events& events() const { return held_->events; }

  // The highest sequence number of the id that the writer knows to be stored: the journal has
  // reported it at the opening, or has acknowledged the event since. A journal whose highest number
  // is lower has lost events (CheckWriter). 0: the writer does not say. Each copy has its own
  // number.
  uint64_t known_stored() const { return known_stored_; }
  void set_known_stored(uint64_t sequence_nr) { known_stored_ = sequence_nr; }

  size_t ByteSize() const;

 private:
  struct Held {
    explicit Held(Events its_events) : events(std::move(its_events)) {}
    explicit Held(size_t count) : events(count) {}
    // AtomicWrites that share it. A decrement is acq_rel, and so is a look that finds one: what
    // others have read was read before the last of them ends it, or uses it again.
    std::atomic<uint32_t> owners{1};
    Events events;
  };
  class Spares;

  explicit AtomicWrite(Held* held) : held_(held) {}

  void LetGo() {
    // An only owner stays the only one.
    if (held_->owners.load(std::memory_order_acquire) == 1 ||
        held_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      End(held_);
    }
  }
  static void End(Held* held);

  static absl::Status Check(const Events& events);

  Held* held_ = nullptr;
  uint64_t known_stored_ = 0;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_PERSISTENCE_JOURNAL_PERSISTENT_REPR_H_
