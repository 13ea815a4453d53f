// A program and a library that it opens agree on the type of a message and on the pool.
#include <dlfcn.h>

#include <cstddef>

#include "gtest/gtest.h"

#include "fraktor/actor/message/envelope.h"
#include "fraktor/actor/message/internal/node_pool.h"
#include "fraktor/actor/message/internal/plugin_message_for_test.h"
#include "fraktor/actor/message/message_type.h"
#include "fraktor/actor/ref/actor_ref.h"

namespace fraktor {

using actor_internal::NodeCache;
using actor_internal::NodeClass;
using actor_internal::NodePool;

namespace {

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() : library_(dlopen("actor/message/libplugin_for_test.so", RTLD_NOW | RTLD_LOCAL)) {}
  ~PluginTest() override {
    if (library_ != nullptr) dlclose(library_);
  }
  void SetUp() override { ASSERT_NE(library_, nullptr) << dlerror(); }

  template <class Function>
  Function Find(const char* name) {
    void* const found = dlsym(library_, name);
    EXPECT_NE(found, nullptr) << dlerror();
    return reinterpret_cast<Function>(found);
  }

  static size_t NodesInUse() {
    NodeCache::OfThisThread().Flush();
    return NodePool::Stats(NodeClass::k64).issued_nodes + NodePool::Stats(NodeClass::k128).issued_nodes;
  }

 private:
  void* const library_;
};

TEST_F(PluginTest, HasTheSameTableForTheSameType) {
  EXPECT_EQ(Find<plugin_internal::TypeOfShared>("PluginTypeOfShared")(), MessageTypeOf<plugin_internal::Shared>());
}

TEST_F(PluginTest, MakesMessagesThatTheProgramKnows) {
  const size_t before = NodesInUse();
  EnvelopePtr envelope(
      Find<plugin_internal::MakeShared>("PluginMakeShared")("from the plugin, and longer than a short string"));
  ASSERT_TRUE(envelope->Is<plugin_internal::Shared>());
  EXPECT_EQ(envelope->As<plugin_internal::Shared>().text, "from the plugin, and longer than a short string");
  envelope.reset();
  EXPECT_EQ(NodesInUse(), before);
}

TEST_F(PluginTest, KnowsTheMessagesOfTheProgram) {
  const size_t before = NodesInUse();
  EXPECT_TRUE(Find<plugin_internal::EndShared>("PluginEndShared")(
      MakeEnvelope<plugin_internal::Shared>(ActorRef(), "from the program, and longer than a short string").release()));
  EXPECT_FALSE(Find<plugin_internal::EndShared>("PluginEndShared")(MakeEnvelope<int>(ActorRef(), 1).release()));
  EXPECT_EQ(NodesInUse(), before) << "the pool is one";
}

}  // namespace
}  // namespace fraktor
