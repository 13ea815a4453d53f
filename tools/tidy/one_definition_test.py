"""Tests of one_definition.py."""

import unittest

from tidy import one_definition
from tidy import source_tree


def _names(text):
    return [name for _, name in one_definition.definitions(text)]


class DefinitionsTest(unittest.TestCase):
    """Which types a source defines."""

    def test_finds_types_of_namespaces(self):
        text = """
namespace fraktor::inline v0 {
struct Plain {
  struct Inner {};
};
class ABSL_MUST_USE_RESULT Derived final : public Base<Plain> {};
enum class Kind : uint8_t { kOne };
namespace detail {
template <class T, int kSize = 3>
struct Box {};
template <>
struct Box<int> {};
}  // namespace detail
}
"""
        self.assertEqual(_names(text), [
            "fraktor::Plain", "fraktor::Derived", "fraktor::Kind", "fraktor::detail::Box", "fraktor::detail::Box<int>"])

    def test_skips_declarations_functions_and_unnamed_namespaces(self):
        text = """
namespace a {
class Declared;
struct Declared Make() { return {}; }
enum Kind kind = {};
namespace {
struct Hidden {};
}
inline constexpr struct Local {} kLocal;
struct Outer::Inner {};
// struct Comment {};
const char* text = "struct Text {";
#define MACRO struct Macro {
}
"""
        self.assertEqual(_names(text), ["a::Local"])

    def test_counts_lines(self):
        self.assertEqual(list(one_definition.definitions("namespace a {\n\nstruct B {\n};\n\nclass C {};\n}\n")),
                         [(3, "a::B"), (6, "a::C")])


class CheckTest(unittest.TestCase):
    """Which definitions collide."""

    def test_finds_two_headers_with_one_name(self):
        text = "namespace a {\nstruct Admission {};\n}\n"
        found = list(one_definition.check(source_tree.FakeTree({"x/x.h": text, "y/y.h": text})))
        self.assertEqual([str(entry) for entry in found], ["y/y.h:2: a::Admission is also a type of x/x.h:2"])

    def test_tells_namespaces_apart_and_leaves_tests_alone(self):
        tree = source_tree.FakeTree({
            "x/x.h": "namespace a {\nstruct Admission {};\n}\n",
            "y/y.h": "namespace b {\nstruct Admission {};\n}\n",
            "z/z_test.cc": "namespace a {\nstruct Admission {};\n}\n",
        })
        self.assertEqual(list(one_definition.check(tree)), [])

    def test_lets_two_fixtures_have_one_name_but_not_a_fixture_and_the_product(self):
        text = "namespace a {\nstruct Do {};\n}\n"
        build = 'fraktor_cc_library(name = "f", testonly = True, hdrs = ["f.h"])\n'
        files = {"x/f.h": text, "x/BUILD.bazel": build, "y/f.h": text, "y/BUILD.bazel": build}
        self.assertEqual(list(one_definition.check(source_tree.FakeTree(files))), [])
        files["z/product.h"] = text
        found = [str(entry) for entry in one_definition.check(source_tree.FakeTree(files))]
        self.assertEqual(found, ["x/f.h:2: a::Do is also a type of z/product.h:2",
                                 "y/f.h:2: a::Do is also a type of z/product.h:2"])


if __name__ == "__main__":
    unittest.main()
