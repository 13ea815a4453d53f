"""Tests of threaded_tests.py."""

import unittest

from stressing import threaded_tests

_QUERY = """<?xml version="1.1"?>
<query version="2">
  <rule class="cc_test" name="//a:own_test">
    <list name="srcs"><label value="//a:own_test.cc"/></list>
    <list name="deps"><label value="//a:product"/></list>
  </rule>
  <rule class="cc_test" name="//a:fixture_test">
    <list name="srcs"><label value="//a:fixture_test.cc"/></list>
    <list name="deps"><label value="//a:fixture"/></list>
  </rule>
  <rule class="cc_test" name="//a:product_test">
    <list name="srcs"><label value="//a:product_test.cc"/></list>
    <list name="deps"><label value="//a:product"/><label value="//actor/testkit:testkit"/></list>
  </rule>
  <rule class="cc_library" name="//a:fixture">
    <boolean name="testonly" value="true"/>
    <list name="hdrs"><label value="//a:fixture.h"/></list>
  </rule>
  <rule class="cc_library" name="//a:product">
    <list name="hdrs"><label value="//a:product.h"/></list>
  </rule>
  <rule class="cc_library" name="//actor/testkit:testkit">
    <boolean name="testonly" value="true"/>
    <list name="hdrs"><label value="//actor/testkit:test_kit.h"/></list>
  </rule>
  <rule class="sh_test" name="//a:script_test">
    <list name="srcs"><label value="//a:script_test.cc"/></list>
  </rule>
</query>
"""

_FILES = {
    "//a:own_test.cc": "std::thread other([] {});",
    "//a:fixture_test.cc": "TreeFixture tree;",
    "//a:fixture.h": "StdToolbox toolbox_;",
    "//a:product_test.cc": "TestKit kit;",
    "//a:product.h": "std::thread thread_;",
    "//actor/testkit:test_kit.h": "std::unique_ptr<StdToolbox> toolbox_;",
    "//a:script_test.cc": "std::thread",
}


class ThreadedTestsTest(unittest.TestCase):
    """What counts as a test with threads."""

    def test_reads_the_sources_of_a_test_and_of_its_test_only_libraries(self):
        found = threaded_tests.threaded(threaded_tests.rules(_QUERY), _FILES.__getitem__)
        self.assertEqual(found, ["//a:fixture_test", "//a:own_test"])

    def test_knows_the_ways_to_start_a_thread(self):
        for source in (
            "std::jthread reader(Read);",
            "const TestKitOptions options{.threads = 4};",
            'ActorSystem system({.config = {.name = "s"}});',
            "auto system = ActorSystem::Create();",
            "auto store = OpenRocksDbJournal(folder);",
        ):
            self.assertTrue(threaded_tests.starts_threads(source), source)

    def test_takes_a_kit_in_virtual_time_for_one_without_threads(self):
        for source in ("TestKit kit;", "TestKitOptions{.threads = 0}", "SimToolbox toolbox(7);", "int pthreads = 0;"):
            self.assertFalse(threaded_tests.starts_threads(source), source)


if __name__ == "__main__":
    unittest.main()
