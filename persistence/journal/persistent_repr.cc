#include "fraktor/persistence/journal/persistent_repr.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/utils/status/status_macros.h"
#include "fraktor/utils/toolbox/random.h"

namespace fraktor::inline v0 {
namespace {

std::optional<uint64_t> ParseHex(std::string_view digits) {
  uint64_t value = 0;
  for (const char digit : digits) {
    if (digit >= '0' && digit <= '9') {
      value = value << 4 | static_cast<uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = value << 4 | static_cast<uint64_t>(digit - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

WriterId WriterId::Draw(Random& random) {
  WriterId drawn;
  while (drawn.is_none()) {
    drawn.high = random.Next();
    drawn.low = random.Next();
  }
  return drawn;
}

std::optional<WriterId> WriterId::Parse(std::string_view text) {
  if (text.empty()) return WriterId{};
  if (text.size() != 32) return std::nullopt;
  const std::optional<uint64_t> high = ParseHex(text.substr(0, 16));
  const std::optional<uint64_t> low = ParseHex(text.substr(16));
  if (!high.has_value() || !low.has_value()) return std::nullopt;
  return WriterId{*high, *low};
}

std::string WriterId::ToString() const { return is_none() ? std::string() : absl::StrFormat("%016x%016x", high, low); }

PersistentRepr PersistentRepr::WithPersistenceId(std::string changed) const {
  PersistentRepr copy = *this;
  copy.persistence_id = std::move(changed);
  return copy;
}

PersistentRepr PersistentRepr::WithSequenceNr(uint64_t changed) const {
  PersistentRepr copy = *this;
  copy.sequence_nr = changed;
  return copy;
}

PersistentRepr PersistentRepr::WithWriter(WriterId changed) const {
  PersistentRepr copy = *this;
  copy.writer = changed;
  return copy;
}

PersistentRepr PersistentRepr::WithEpoch(uint64_t changed) const {
  PersistentRepr copy = *this;
  copy.epoch = changed;
  return copy;
}

PersistentRepr PersistentRepr::WithTimestamp(absl::Time changed) const {
  PersistentRepr copy = *this;
  copy.timestamp = changed;
  return copy;
}

PersistentRepr PersistentRepr::WithManifest(std::string changed, uint32_t changed_version) const {
  PersistentRepr copy = *this;
  copy.manifest = std::move(changed);
  copy.manifest_version = changed_version;
  return copy;
}

PersistentRepr PersistentRepr::WithPayload(std::string changed) const {
  PersistentRepr copy = *this;
  copy.payload = std::move(changed);
  return copy;
}

PersistentRepr PersistentRepr::WithTags(std::vector<std::string> changed) const {
  PersistentRepr copy = *this;
  copy.tags = std::move(changed);
  return copy;
}

PersistentRepr PersistentRepr::WithMetadata(std::string changed) const {
  PersistentRepr copy = *this;
  copy.metadata = std::move(changed);
  return copy;
}

size_t PersistentRepr::ByteSize() const {
  size_t bytes = manifest.size() + payload.size() + metadata.size();
  for (const std::string& tag : tags) bytes += tag.size();
  return bytes;
}

absl::Status AtomicWrite::Check(const Events& events) {
  if (events.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid,
                     "an atomic write without events; leave it out");
  }
  const PersistentRepr& first = events.front();
  // The usual case.
  if (events.size() == 1 && first.sequence_nr != 0) return absl::OkStatus();
  for (size_t i = 0; i < events.size(); ++i) {
    const PersistentRepr& event = events[i];
    if (event.persistence_id != first.persistence_id) {
      return EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, event.persistence_id,
                        event.sequence_nr,
                        absl::StrCat("in one atomic write with events of \"", first.persistence_id,
                                     "\"; make one atomic write for each persistence id"));
    }
    if (event.epoch != first.epoch || event.writer != first.writer) {
      return EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, event.persistence_id,
                        event.sequence_nr, "in one atomic write with events of another writer or epoch");
    }
    if (event.sequence_nr == 0 || event.sequence_nr != first.sequence_nr + i) {
      return EventError(absl::StatusCode::kInvalidArgument, JournalErrorKind::kInvalid, event.persistence_id,
                        event.sequence_nr,
                        absl::StrCat("event ", i, " of an atomic write that begins at ", first.sequence_nr,
                                     "; numbers begin at 1 and rise by one"));
    }
  }
  return absl::OkStatus();
}

// The memory of atomic writes that have ended on this thread. One event is the usual case: all of
// its memory is used again, also that of its bytes.
class AtomicWrite::Spares {
 public:
  // As a new one. Null if there is none.
  static std::unique_ptr<Held> Take() {
    List& list = ListOfThisThread();
    return std::unique_ptr<Held>(list.size == 0 ? nullptr : list.held[--list.size]);
  }

  static void Keep(std::unique_ptr<Held> held) {
    List& list = ListOfThisThread();
    if (list.size >= list.capacity || held->events.size() != 1) return;
    PersistentRepr& event = held->events[0];
    if (!event.tags.empty() || event.persistence_id.size() + event.ByteSize() > kMaxBytes) return;
    event.persistence_id.clear();
    event.sequence_nr = 0;
    event.writer = {};
    event.epoch = 0;
    event.timestamp = absl::UnixEpoch();
    event.manifest.clear();
    event.manifest_version = 0;
    event.payload.clear();
    event.metadata.clear();
    held->owners.store(1, std::memory_order_relaxed);  // nobody else knows it
    list.held[list.size++] = held.release();
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr size_t kCapacity = 0;  // What is used after its end is to be found.
#else
  static constexpr size_t kCapacity = 8;
#endif
  static constexpr size_t kMaxBytes = 1024;

  // Trivial, so that it can be looked at to the very end of a thread.
  struct List {
    size_t size;
    size_t capacity;
    Held* held[kCapacity + 1];
  };
  // Ends them with the thread. What ends later is not kept.
  struct Closer {
    explicit Closer(List& its_list) : list(its_list) { list.capacity = kCapacity; }
    ~Closer() {
      list.capacity = 0;
      while (list.size > 0) const std::unique_ptr<Held> ended(list.held[--list.size]);
    }
    List& list;
  };

  static List& ListOfThisThread() {
    static thread_local List list = {};
    static thread_local const Closer closer(list);
    return list;
  }
};

void AtomicWrite::End(Held* held) { Spares::Keep(std::unique_ptr<Held>(held)); }

absl::StatusOr<AtomicWrite> AtomicWrite::Make(Events events) {
  FRAKTOR_RETURN_IF_ERROR(Check(events));
  return AtomicWrite(std::make_unique<Held>(std::move(events)).release());
}

absl::StatusOr<AtomicWrite> AtomicWrite::Make(PersistentRepr event) {
  Events events;
  events.push_back(std::move(event));
  return Make(std::move(events));
}

absl::StatusOr<AtomicWrite> AtomicWrite::Fill(size_t count, Filler fill) {
  std::unique_ptr<Held> held = count == 1 ? Spares::Take() : nullptr;
  if (held == nullptr) held = std::make_unique<Held>(count);
  AtomicWrite write(held.release());
  Events& events = write.held_->events;
  for (size_t i = 0; i < count; ++i) FRAKTOR_RETURN_IF_ERROR(fill(i, events[i]));
  FRAKTOR_RETURN_IF_ERROR(Check(events));
  return write;
}

size_t AtomicWrite::ByteSize() const {
  size_t bytes = 0;
  for (const PersistentRepr& event : events()) bytes += event.ByteSize();
  return bytes;
}

}  // namespace fraktor::inline v0
