#include "fraktor/persistence/query/journal_query.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_error.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/persistence/journal/persistent_repr.h"
#include "fraktor/persistence/memory/memory_journal.h"
#include "fraktor/persistence/query/slice.h"
#include "fraktor/persistence/testing/faulty_journal.h"
#include "fraktor/persistence/testing/forwarding_journal.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/future/task.h"
#include "fraktor/utils/status/typed_error.h"
#include "fraktor/utils/toolbox/local_toolbox.h"
#include "fraktor/utils/toolbox/serial_executor.h"

namespace fraktor {
namespace {

using Texts = std::vector<std::string>;

class Query : public testing::Test {
 protected:
  void Write(const std::string& id, uint64_t sequence_nr, std::vector<std::string> tags = {}) {
    std::vector<AtomicWrite> writes;
    writes.push_back(
        AtomicWrite::Make(
            PersistentRepr{.persistence_id = id, .sequence_nr = sequence_nr, .payload = "p", .tags = std::move(tags)})
            .value());
    Future<WriteResults> writing = journal_->Write(std::move(writes));
    ASSERT_TRUE(toolbox_->RunUntil([&] { return writing.IsReady(); }, absl::Hours(1)).ok());
    ASSERT_EQ(writing.Take().value(), WriteResults());
  }

  template <class Q>
  auto Start(Q& query) {
    auto future = query.Next().Start(*executor_);
    EXPECT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
    return future;
  }

  static Texts Names(const EventBatch& batch) {
    Texts names;
    for (const StoredEvent& event : batch) {
      names.push_back(absl::StrCat(std::string(event.persistence_id), "/", event.sequence_nr));
    }
    return names;
  }

  // Everything up to the end of a bounded query, page by page.
  Texts All(EventQuery& query) {
    Texts names;
    while (!query.done()) {
      const absl::StatusOr<EventBatch> batch = Start(query).Take();
      if (!batch.ok()) {
        ADD_FAILURE() << batch.status();
        break;
      }
      for (const std::string& name : Names(*batch)) names.push_back(name);
    }
    return names;
  }

  std::unique_ptr<LocalToolbox> toolbox_ = LocalToolbox::Make({}).value();
  std::unique_ptr<SerialExecutor> executor_ = SerialExecutor::Make(*toolbox_, {}).value();
  std::unique_ptr<MemoryJournal> journal_ =
      MemoryJournal::Open({.toolbox = toolbox_.get(), .max_delay = absl::Milliseconds(10)}).value();
};

// PER-20
TEST_F(Query, EndsWithWhatIsThere) {
  for (uint64_t number = 1; number <= 7; ++number) Write("a", number, {"red"});
  Write("b", 1, {"red", "blue"});
  EventQuery by_id(*journal_, EventQuery::ById("a"), {.page = {.max_events = 3}});
  EXPECT_EQ(All(by_id), (Texts{"a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"}));
  EventQuery part(*journal_, EventQuery::ById("a"), {.from = 3, .to = 5, .page = {.max_events = 2}});
  EXPECT_EQ(All(part), (Texts{"a/3", "a/4", "a/5"}));
  EventQuery by_tag(*journal_, EventQuery::ByTag("red"), {.page = {.max_events = 5}});
  EXPECT_EQ(All(by_tag).size(), 8u);
  EventQuery nothing(*journal_, EventQuery::ByTag("green"), {});
  EXPECT_EQ(All(nothing), Texts());
}

// Counts the pages that are read.
class CountingJournal : public ForwardingJournal {
 public:
  CountingJournal(std::shared_ptr<JournalStorage> journal, bool stays_at_empty_pages)
      : ForwardingJournal(std::move(journal)), stays_at_empty_pages_(stays_at_empty_pages) {}

  Future<EventBatch> Replay(ReplayPage page) override {
    ++pages;
    return ForwardingJournal::Replay(page).Map([this, from = page.from_sequence_nr](EventBatch batch) {
      if (stays_at_empty_pages_ && batch.empty()) batch.Finish(from, batch.at_end());
      return batch;
    });
  }
  Future<EventBatch> EventsByTag(TagPage page) override {
    ++pages;
    return ForwardingJournal::EventsByTag(page).Map([this, from = page.from_offset](EventBatch batch) {
      if (stays_at_empty_pages_ && batch.empty()) batch.Finish(from, batch.at_end());
      return batch;
    });
  }

  int pages = 0;

 private:
  // A page without events does not say that a later number is the next.
  const bool stays_at_empty_pages_;
};

// PER-20: a query that waits costs nothing.
TEST_F(Query, WaitsForWhatComesAfterDeletedEvents) {
  const std::shared_ptr<JournalStorage> shared = std::move(journal_);
  const auto write = [&](uint64_t number) {
    std::vector<AtomicWrite> writes;
    writes.push_back(
        AtomicWrite::Make(PersistentRepr{.persistence_id = "a", .sequence_nr = number, .payload = "p", .tags = {"red"}})
            .value());
    Future<WriteResults> writing = shared->Write(std::move(writes));
    ASSERT_TRUE(toolbox_->RunUntil([&] { return writing.IsReady(); }, absl::Hours(1)).ok());
  };
  uint64_t next = 1;
  for (const bool stays_at_empty_pages : {false, true}) {
    for (const JournalSubject& subject : {EventQuery::ById("a"), EventQuery::ByTag("red")}) {
      const uint64_t last = next + 2;
      for (; next <= last; ++next) write(next);
      Future<void> deletion = shared->DeleteTo("a", last, kNoEpoch);
      ASSERT_TRUE(toolbox_->RunUntil([&] { return deletion.IsReady(); }, absl::Hours(1)).ok());
      CountingJournal counting(shared, stays_at_empty_pages);
      EventQuery query(counting, subject, {.live = true});
      Future<EventBatch> waiting = Start(query);
      EXPECT_FALSE(waiting.IsReady());
      EXPECT_LE(counting.pages, 3) << subject.name << " " << stays_at_empty_pages;
      write(next++);
      ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
      ASSERT_TRUE(waiting.IsReady());
      EXPECT_EQ(Names(waiting.Take().value()), Texts{absl::StrCat("a/", next - 1)});
      EXPECT_LE(counting.pages, 5) << subject.name << " " << stays_at_empty_pages;
    }
  }
}

// PER-20
TEST_F(Query, GoesOnWithWhatComesIfItIsLive) {
  Write("a", 1);
  EventQuery query(*journal_, EventQuery::ById("a"), {.live = true});
  EXPECT_EQ(Names(Start(query).Take().value()), Texts{"a/1"});
  Future<EventBatch> waiting = Start(query);
  EXPECT_FALSE(waiting.IsReady());
  Write("b", 1);
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  EXPECT_FALSE(waiting.IsReady());
  Write("a", 2);
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  ASSERT_TRUE(waiting.IsReady());
  EXPECT_EQ(Names(waiting.Take().value()), Texts{"a/2"});
  EXPECT_FALSE(query.done());
  // Another one goes on where this one is.
  EventQuery other(*journal_, EventQuery::ById("a"), {.live = true, .from = query.position()});
  Write("a", 3);
  EXPECT_EQ(Names(Start(other).Take().value()), Texts{"a/3"});
}

// PER-20
TEST_F(Query, FollowsATag) {
  EventQuery query(*journal_, EventQuery::ByTag("red"), {.live = true});
  Future<EventBatch> waiting = Start(query);
  EXPECT_FALSE(waiting.IsReady());
  Write("a", 1, {"blue"});
  Write("b", 1, {"red"});
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  ASSERT_TRUE(waiting.IsReady());
  EXPECT_EQ(Names(waiting.Take().value()), Texts{"b/1"});
  waiting = Start(query);
  EXPECT_FALSE(waiting.IsReady());
  Write("a", 2, {"red"});
  Write("c", 1, {"red"});
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  Texts names = Names(waiting.Take().value());
  if (names.size() == 1) names.push_back(Names(Start(query).Take().value()).front());
  EXPECT_EQ(names, (Texts{"a/2", "c/1"}));
}

TEST_F(Query, EndsALiveQueryAtItsLastNumber) {
  Write("a", 1);
  EventQuery query(*journal_, EventQuery::ById("a"), {.live = true, .to = 2});
  EXPECT_EQ(Names(Start(query).Take().value()), Texts{"a/1"});
  Future<EventBatch> waiting = Start(query);
  EXPECT_FALSE(waiting.IsReady());
  // Number 2 was rejected and never comes.
  Write("a", 3);
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  ASSERT_TRUE(waiting.IsReady());
  EXPECT_TRUE(waiting.Take()->empty());
  EXPECT_TRUE(query.done());
}

// PER-20
TEST_F(Query, ListsIdsAndThoseThatCome) {
  Write("b", 1);
  Write("a", 1);
  IdQuery bounded(*journal_, {.page = {.max_events = 1}});
  EXPECT_EQ(Start(bounded).Take()->ids, Texts{"b"});
  EXPECT_FALSE(bounded.done());
  EXPECT_EQ(Start(bounded).Take()->ids, Texts{"a"});
  EXPECT_TRUE(bounded.done());
  IdQuery live(*journal_, {.live = true});
  EXPECT_EQ(Start(live).Take()->ids, (Texts{"b", "a"}));
  Future<IdBatch> waiting = Start(live);
  EXPECT_FALSE(waiting.IsReady());
  Write("a", 2);
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  EXPECT_FALSE(waiting.IsReady());
  Write("c", 1);
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  EXPECT_EQ(waiting.Take()->ids, Texts{"c"});
}

TEST_F(Query, RefusesWhatIsNoIdAndNoTag) {
  Write("a", 1, {"red"});
  for (const JournalSubject& subject : {JournalSubject::OfAllIds(), EventQuery::ByTag(""), EventQuery::ById("")}) {
    for (const bool live : {false, true}) {
      EventQuery query(*journal_, subject, {.live = live});
      Future<EventBatch> answer = Start(query);
      ASSERT_TRUE(answer.IsReady());
      EXPECT_EQ(answer.Take().status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST_F(Query, IsToldOfErrorsAndOfTheEnd) {
  FaultyJournal faulty(*journal_, *toolbox_, *executor_, {.fail_read = 1.0});
  EventQuery failing(faulty, EventQuery::ById("a"), {});
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(Start(failing).Take().status()), JournalErrorKind::kIo);
  EventQuery query(*journal_, EventQuery::ById("a"), {.live = true});
  Future<EventBatch> waiting = Start(query);
  ASSERT_TRUE(journal_->Close().Take().ok());
  ASSERT_TRUE(toolbox_->RunFor(absl::Minutes(1)).ok());
  EXPECT_EQ(ErrorKindOf<JournalErrorKind>(waiting.Take().status()), JournalErrorKind::kClosed);
}

// P135
TEST(Slice, OfAnIdIsTheRemainderOfItsHashOnTheJvm) {
  EXPECT_EQ(SliceOf("pid-1"), 111);
  EXPECT_EQ(SliceOf("pid-2"), 112);
  EXPECT_EQ(SliceOf("pid-6712"), 92);
  EXPECT_EQ(SliceOf(""), 0);
  EXPECT_EQ(SliceOf("polygenelubricants"), 0) << "the hash that has no absolute value";
  EXPECT_EQ(SliceOf("account-7"), 873) << "a negative hash";
  EXPECT_EQ(SliceOf("\u00e4"), 228);
  EXPECT_EQ(SliceOf("\u65e5\u672c"), 487);
  EXPECT_EQ(SliceOf("\U0001F600"), 355) << "two units of UTF-16";
  const int replaced = SliceOf("\uFFFD");
  for (const char* bad : {"\x80", "\xC1", "\xE4", "\xFF"}) EXPECT_EQ(SliceOf(bad), replaced);
}

// P135
TEST(Slice, RangesCutAllSlicesIntoEqualParts) {
  EXPECT_EQ(SliceRanges(4).value(), (std::vector<SliceRange>{{0, 255}, {256, 511}, {512, 767}, {768, 1023}}));
  EXPECT_EQ(SliceRanges(1).value(), (std::vector<SliceRange>{{0, 1023}}));
  EXPECT_EQ(SliceRanges(1024).value().back(), (SliceRange{1023, 1023}));
  EXPECT_TRUE(SliceRange({256, 511}).Contains(256) && SliceRange({256, 511}).Contains(511));
  EXPECT_FALSE(SliceRange({256, 511}).Contains(255) || SliceRange({256, 511}).Contains(512));
  for (const int bad : {-1, 0, 3, 2048}) {
    EXPECT_EQ(SliceRanges(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace fraktor
