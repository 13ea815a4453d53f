#include "gtest/gtest.h"

#include "fraktor/utils/strings/string_view.h"

#include "actor/actor.h"
#include "utils/strings/string_view.h"

namespace {

TEST(Consumer, UsesFraktorBesideFoldersOfTheSameNames) {
  const Actor actor{.name = "Sarah Bernhardt", .role = "Hamlet"};
  EXPECT_EQ(FirstWord(fraktor::ToStd(fraktor::ToAbsl(actor.name))), "Sarah");
}

}  // namespace
