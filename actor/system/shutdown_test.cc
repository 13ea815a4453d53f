// Shutdowns of systems with threads: handlers that delay them, and handlers that call them.
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

#include "fraktor/actor/cell/actor_props.h"
#include "fraktor/actor/context/actor_context.h"
#include "fraktor/actor/context/actor_instance.h"
#include "fraktor/actor/event/log.h"
#include "fraktor/actor/send/mailing.h"
#include "fraktor/actor/system/actor_system.h"
#include "fraktor/actor/system/actor_system_options.h"
#include "fraktor/utils/future/future.h"
#include "fraktor/utils/sync/mutex.h"

namespace fraktor {
namespace {

struct Hold {
  std::counting_semaphore<>* holds;
  std::counting_semaphore<>* may_go;
};
struct ShutDown {
  ShutdownReport* report;
};

class Member final : public ActorInstance {
 public:
  absl::Status Receive(ActorContext& context, Envelope& message) override {
    if (const auto* const hold = message.TryAs<Hold>()) {
      hold->holds->release();
      hold->may_go->acquire();
    } else if (const auto* const down = message.TryAs<ShutDown>()) {
      *down->report = context.system().Shutdown(absl::InfiniteDuration());
    } else {
      return context.Unhandled(message);
    }
    return absl::OkStatus();
  }
};

// Releases the blocked handler as soon as the log says that the shutdown waits for it.
class LettingGo final : public LogSink {
 public:
  void Write(const LogRecord& record) override {
    {
      MutexLock lock(mutex_);
      lines_.emplace_back(record.text);
    }
    if (record.text.find("have not ended within") != std::string::npos) may_go_.release();
  }
  int Count(const std::string& text) {
    MutexLock lock(mutex_);
    int count = 0;
    for (const std::string& line : lines_) count += line.find(text) != std::string::npos ? 1 : 0;
    return count;
  }
  std::counting_semaphore<>& may_go() { return may_go_; }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  std::counting_semaphore<> may_go_{0};
};

class Shutdown : public testing::Test {
 protected:
  Shutdown() {
    ActorSystemOptions options;
    options.config.system_name = "office";
    options.workers = 2;
    options.log_sink = &sink_;
    system_ = ActorSystem::Create(options).value();
  }

  LettingGo sink_;
  std::unique_ptr<ActorSystem> system_;
};

// SCH-9: the report shows the state at the deadline, not after the last handler.
TEST_F(Shutdown, NamesWhoHoldsItUpWhileItWaits) {
  for (const DispatcherChoice choice : {DispatcherChoice::kAutomatic, DispatcherChoice::kPinned}) {
    const PropsPtr props = MakeProps<Member>({.dispatcher = choice});
    const std::string name = choice == DispatcherChoice::kPinned ? "pinned" : "usual";
    std::counting_semaphore<> holds{0};
    Tell(system_->TrySpawn(*props, name).value(), Hold{&holds, &sink_.may_go()});
    holds.acquire();
    const ShutdownReport report = system_->Shutdown(absl::Milliseconds(1));
    EXPECT_EQ(report.not_stopped, std::vector<std::string>{"pekko://office/user/" + name});
    EXPECT_EQ(sink_.Count("1 actors have not ended within 1ms, the first: pekko://office/user/" + name), 1);
    ActorSystemOptions options;
    options.config.system_name = "office";
    options.log_sink = &sink_;
    system_ = ActorSystem::Create(options).value();
  }
}

// A handler that waited for the end of its own system would wait for itself.
TEST_F(Shutdown, IsBegunButNotAwaitedByAHandler) {
  Future<void> terminated = system_->WhenTerminated();
  ShutdownReport report;
  Tell(system_->TrySpawn(PropsOf<Member>(), "eager").value(), ShutDown{&report});
  ASSERT_TRUE(terminated.Wait().ok());
  EXPECT_EQ(report.not_stopped, std::vector<std::string>{"pekko://office/user/eager"});
  EXPECT_EQ(sink_.Count("Shutdown was called on a worker"), 1);
}

}  // namespace
}  // namespace fraktor
