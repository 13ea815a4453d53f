#include "fraktor/persistence/rocksdb/pages_ahead.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"

#include "fraktor/persistence/journal/event_batch.h"
#include "fraktor/persistence/journal/journal_storage.h"
#include "fraktor/utils/future/future.h"

namespace fraktor {
namespace {

ReplayPage PageFrom(uint64_t from) {
  return {.persistence_id = "a", .from_sequence_nr = from, .to_sequence_nr = 100, .limits = {.max_events = 10}};
}

// Reads it, as a reader would. What was asked for meanwhile is answered.
void Finish(PagesAhead& pages, PageAhead& page, absl::StatusOr<EventBatch> events = EventBatch()) {
  page.events = std::move(events);
  if (std::optional<Promise<EventBatch>> asked = pages.Finish(page)) asked->Set(std::move(page.events));
}

TEST(PagesAhead, KeepsAPageUntilItIsAskedForOnce) {
  PagesAhead pages(2);
  const std::shared_ptr<PageAhead> page = pages.Begin(PageFrom(11));
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(pages.Take(PageFrom(11)), nullptr) << "it is not read yet";
  Finish(pages, *page);
  EXPECT_FALSE(pages.Await(PageFrom(11)).has_value()) << "it is there, and nobody has to wait";
  EXPECT_EQ(pages.Take(PageFrom(11)), page);
  EXPECT_EQ(pages.Take(PageFrom(11)), nullptr);
}

TEST(PagesAhead, AnswersTheFirstWhoAsksWhileAPageIsRead) {
  PagesAhead pages(2);
  const std::shared_ptr<PageAhead> page = pages.Begin(PageFrom(11));
  std::optional<Future<EventBatch>> first = pages.Await(PageFrom(11));
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(pages.Await(PageFrom(11)).has_value()) << "one page is for one";
  EXPECT_FALSE(first->IsReady());
  Finish(pages, *page);
  ASSERT_TRUE(first->IsReady());
  EXPECT_TRUE(first->Take().ok());
  EXPECT_EQ(pages.Take(PageFrom(11)), nullptr) << "it has left the list";
}

TEST(PagesAhead, TellsWhoHasAskedThatAPageCouldNotBeRead) {
  PagesAhead pages(2);
  const std::shared_ptr<PageAhead> page = pages.Begin(PageFrom(11));
  std::optional<Future<EventBatch>> asked = pages.Await(PageFrom(11));
  Finish(pages, *page, absl::UnavailableError("no disk"));
  EXPECT_TRUE(absl::IsUnavailable(asked->Take().status()));
}

TEST(PagesAhead, DoesNotKeepAPageThatCouldNotBeRead) {
  PagesAhead pages(1);
  Finish(pages, *pages.Begin(PageFrom(11)), absl::UnavailableError("no disk"));
  EXPECT_EQ(pages.Take(PageFrom(11)), nullptr);
  EXPECT_NE(pages.Begin(PageFrom(11)), nullptr) << "there is room again";
}

TEST(PagesAhead, IsForTheVerySameRequest) {
  PagesAhead pages(2);
  Finish(pages, *pages.Begin(PageFrom(11)));
  ReplayPage other_id = PageFrom(11);
  other_id.persistence_id = "b";
  ReplayPage other_end = PageFrom(11);
  other_end.to_sequence_nr = 99;
  ReplayPage fewer_events = PageFrom(11);
  fewer_events.limits.max_events = 9;
  ReplayPage fewer_bytes = PageFrom(11);
  fewer_bytes.limits.max_bytes -= 1;
  for (const ReplayPage& other : {PageFrom(12), other_id, other_end, fewer_events, fewer_bytes}) {
    EXPECT_EQ(pages.Take(other), nullptr);
  }
  EXPECT_EQ(pages.Begin(PageFrom(11)), nullptr) << "there is one already";
  EXPECT_NE(pages.Take(PageFrom(11)), nullptr);
}

TEST(PagesAhead, GivesThePlaceOfTheOldestThatNobodyHasAskedFor) {
  PagesAhead pages(2);
  const std::shared_ptr<PageAhead> reading = pages.Begin(PageFrom(1));
  const std::shared_ptr<PageAhead> read = pages.Begin(PageFrom(2));
  EXPECT_EQ(pages.Begin(PageFrom(3)), nullptr) << "both are being read";
  Finish(pages, *read);
  EXPECT_NE(pages.Begin(PageFrom(3)), nullptr);
  EXPECT_EQ(pages.Take(PageFrom(2)), nullptr);
  Finish(pages, *reading);
  EXPECT_EQ(pages.Take(PageFrom(1)), reading);
}

}  // namespace
}  // namespace fraktor
