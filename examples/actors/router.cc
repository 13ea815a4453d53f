// A pool of workers behind one reference. The thread that sends a message chooses the worker: no
// message passes through the router.
#include "fraktor/actor/router/router.h"

#include <iostream>

#include "fraktor/actor/actor.h"

struct Answer {
  int square;
};
struct Job {
  using Reply = Answer;
  int number;
};

class Worker : public fraktor::Actor<Worker, Job> {
 public:
  Answer On(Context&, const Job& job) { return {job.number * job.number}; }
};

int main() {
  fraktor::ActorSystem system("factory");
  auto workers = fraktor::SpawnPool<Worker>(system, {.size = 4}, "workers");
  int sum = 0;
  for (int number = 1; number <= 10; ++number) {
    absl::StatusOr<Answer> answer = system.AskAndWait(workers, Job{number}, absl::Seconds(5));
    if (answer.ok()) sum += answer->square;
  }
  std::cout << "the squares of 1 to 10 add up to " << sum << "\n";
  return 0;
}
