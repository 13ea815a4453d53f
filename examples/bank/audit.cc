#include "fraktor/examples/bank/audit.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/serialization/codec_registry.h"
#include "fraktor/examples/bank/account.h"
#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/replay_cursor.h"
#include "fraktor/utils/status/status_macros.h"

namespace bank {
namespace {

constexpr size_t kMaxFaultTexts = 20;

// All that the journal says of one transfer.
struct Story {
  std::string from = {};
  std::string to = {};
  int64_t cents = 0;
  // How many of each.
  int given = 0;
  int declined = 0;
  int taken = 0;
  int refused = 0;
  int paid = 0;
  int returned = 0;

  // On the way if it is none that may be.
  Outcome Ending() const {
    const int events = given + declined + taken + refused + paid + returned;
    if (events == 3 && given == 1 && taken == 1 && paid == 1) return Outcome::kPaid;
    if (events == 3 && given == 1 && refused == 1 && returned == 1) return Outcome::kReturned;
    if (events == 1 && declined == 1) return Outcome::kDeclined;
    return Outcome::kOnTheWay;
  }
  std::string ToString() const {
    return absl::StrCat("given ", given, ", taken ", taken, ", refused ", refused, ", settled as paid ", paid,
                        ", settled as returned ", returned, ", declined ", declined, " times");
  }
};

class Auditor {
 public:
  explicit Auditor(const AuditQuestion& question) : question_(question) {}

  absl::Status Read(fraktor::JournalStorage& journal) {
    FRAKTOR_ASSIGN_OR_RETURN(codecs_, AccountCodecs().Build());
    for (fraktor::IdPage page;;) {
      FRAKTOR_ASSIGN_OR_RETURN(fraktor::IdBatch batch, journal.PersistenceIds(page).Wait());
      for (const std::string& id : batch.ids) {
        if (id.starts_with(kAccountPrefix)) FRAKTOR_RETURN_IF_ERROR(ReadAccount(journal, id));
      }
      if (batch.at_end) return absl::OkStatus();
      page.from_offset = batch.resume_at;
    }
  }

  AuditReport Judge() {
    for (const auto& [transfer, story] : stories_) {
      switch (story.Ending()) {
        case Outcome::kPaid:
          ++report_.paid;
          break;
        case Outcome::kReturned:
          ++report_.returned;
          break;
        case Outcome::kDeclined:
          ++report_.declined;
          break;
        case Outcome::kOnTheWay:
          Fault(absl::StrCat("transfer ", transfer, " from ", story.from, " to ", story.to, " was ", story.ToString()));
          break;
      }
    }
    report_.unacknowledged = stories_.size();
    for (const Acknowledged& told : question_.acknowledged) Compare(told);
    if (report_.accounts < question_.accounts) {
      Fault(absl::StrCat(report_.accounts, " accounts were opened, and not ", question_.accounts));
    }
    if (report_.money_in_cents != report_.money_out_cents) {
      Fault(absl::StrCat("money in is ", report_.money_in_cents, " cents, money out is ", report_.money_out_cents));
    }
    return std::move(report_);
  }

 private:
  absl::Status ReadAccount(fraktor::JournalStorage& journal, const std::string& id) {
    const std::string name = id.substr(kAccountPrefix.size());
    int64_t cents = 0;
    int opened = 0;
    fraktor::ReplayCursor cursor({.persistence_id = id});
    while (!cursor.done()) {
      FRAKTOR_ASSIGN_OR_RETURN(fraktor::EventBatch batch, journal.Replay(cursor.NextPage({})).Wait());
      cursor.Advance(batch);
      for (const fraktor::StoredEvent& stored : batch) {
        ++report_.events;
        FRAKTOR_ASSIGN_OR_RETURN(fraktor::EnvelopePtr event, codecs_->Decode({.manifest = stored.manifest,
                                                                              .version = stored.manifest_version,
                                                                              .bytes = stored.payload}));
        if (const auto* open = event->TryAs<Opened>()) {
          cents += open->cents;
          report_.money_in_cents += open->cents;
          if (open->cents != question_.opening_cents) {
            Fault(absl::StrCat(name, " was opened with ", open->cents, " cents, and not ", question_.opening_cents));
          }
          if (++opened > 1) Fault(absl::StrCat(name, " was opened ", opened, " times"));
        } else {
          cents += Note(name, *event);
        }
        if (cents < 0) Fault(absl::StrCat(name, " has ", cents, " cents after its event ", stored.sequence_nr));
      }
    }
    report_.accounts += opened > 0 ? 1 : 0;
    report_.money_out_cents += cents;
    return absl::OkStatus();
  }

  // By how much the account changes.
  int64_t Note(const std::string& account, const fraktor::Envelope& event) {
    if (const auto* given = event.TryAs<Given>()) {
      ++StoryOf(given->transfer, account, given->to, given->cents).given;
      return -given->cents;
    }
    if (const auto* declined = event.TryAs<Declined>()) {
      ++StoryOf(declined->transfer, account, declined->to, declined->cents).declined;
      return 0;
    }
    if (const auto* taken = event.TryAs<Taken>()) {
      ++StoryOf(taken->transfer, taken->from, account, taken->cents).taken;
      return taken->cents;
    }
    if (const auto* refused = event.TryAs<Refused>()) {
      ++StoryOf(refused->transfer, refused->from, account, refused->cents).refused;
      return 0;
    }
    if (const auto* settled = event.TryAs<Settled>()) {
      // It comes behind its Given, in the same account.
      Story& story = stories_[settled->transfer];
      if (story.from != account) Fault(absl::StrCat(account, " settled transfer ", settled->transfer, ", not its own"));
      ++(settled->is_paid ? story.paid : story.returned);
      return settled->is_paid ? 0 : story.cents;
    }
    Fault(absl::StrCat(account, " has an event that accounts have not"));
    return 0;
  }

  Story& StoryOf(const std::string& transfer, const std::string& from, const std::string& to, int64_t cents) {
    const auto [found, is_new] = stories_.try_emplace(transfer, Story{.from = from, .to = to, .cents = cents});
    Story& story = found->second;
    if (!is_new && (story.from != from || story.to != to || story.cents != cents)) {
      Fault(absl::StrCat("transfer ", transfer, " is ", story.cents, " cents from ", story.from, " to ", story.to,
                         " in one event, and ", cents, " cents from ", from, " to ", to, " in another"));
    }
    return story;
  }

  void Compare(const Acknowledged& told) {
    const auto found = stories_.find(told.transfer);
    if (found == stories_.end()) {
      Fault(absl::StrCat("transfer ", told.transfer, " was acknowledged as ", std::string(NameOf(told.outcome)),
                         ", and is not in the journal"));
      return;
    }
    if (!told_.insert(told.transfer).second) {
      Fault(absl::StrCat("transfer ", told.transfer, " was acknowledged twice"));
      return;
    }
    --report_.unacknowledged;
    const Story& story = found->second;
    if (story.Ending() != told.outcome || story.from != told.from || story.to != told.to || story.cents != told.cents) {
      Fault(absl::StrCat("transfer ", told.transfer, " was acknowledged as ", told.cents, " cents from ", told.from,
                         " to ", told.to, ", ", std::string(NameOf(told.outcome)), "; the journal has ", story.cents,
                         " cents from ", story.from, " to ", story.to, ", ", story.ToString()));
      return;
    }
    ++report_.confirmed;
  }

  void Fault(std::string text) {
    ++report_.fault_count;
    if (report_.faults.size() < kMaxFaultTexts) report_.faults.push_back(std::move(text));
  }

  const AuditQuestion& question_;
  std::shared_ptr<const fraktor::CodecRegistry> codecs_;
  std::map<std::string, Story> stories_;
  std::set<std::string> told_;
  AuditReport report_;
};

}  // namespace

absl::StatusOr<AuditReport> Audit(fraktor::JournalStorage& journal, const AuditQuestion& question) {
  Auditor auditor(question);
  FRAKTOR_RETURN_IF_ERROR(auditor.Read(journal));
  return auditor.Judge();
}

}  // namespace bank
