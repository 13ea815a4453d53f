"""Tests of direct_deps.py."""

import unittest

from tidy import direct_deps
from tidy import source_tree

_BUILD = """
fraktor_cc_library(name = "a", hdrs = ["a.h"], deps = [":b"])
fraktor_cc_library(name = "b", srcs = ["b.cc", "private.h"], hdrs = ["b.h"])
fraktor_cc_library(name = "tables", textual_hdrs = ["table.inc"])
fraktor_cc_umbrella(name = "x", deps = [":inner"])
fraktor_cc_umbrella(name = "inner", deps = [":a", "//x:b"])
alias(name = "other_a", actual = ":a")
fraktor_cc_proto_library(name = "frame", srcs = ["frame.proto"])
cc_grpc_library(name = "peer", srcs = ["peer.proto"])
fraktor_cc_test(name = "a_test", srcs = ["a_test.cc"], deps = %s)
"""


def _found(deps, *headers):
    """The findings for a test that has some deps and includes some headers."""
    texts = {
        "x/BUILD.bazel": _BUILD % deps,
        "x/a.h": "",
        "x/b.h": "",
        "x/b.cc": '#include "fraktor/x/private.h"\n#include "fraktor/x/b.h"\n',
        "x/private.h": "",
        "x/a_test.cc": '#include "gtest/gtest.h"\n' + "".join(f'#include "fraktor/{path}"\n' for path in headers),
    }
    return [str(found) for found in direct_deps.check(source_tree.FakeTree(texts))]


class DirectDepsTest(unittest.TestCase):
    """Which includes need another dep."""

    def test_names_target_source_header_and_dep(self):
        self.assertEqual(_found('[":a"]', "x/a.h", "x/b.h"),
                         ["x/a_test.cc:3: //x:a_test includes x/b.h and has no dep //x:b"])

    def test_takes_each_form_of_a_label(self):
        for deps in ('[":b"]', '["b"]', '["//x:b"]', '["@fraktor//x:b"]', '["@other//:y"] + [":b"]',
                     'select({"//y:z": [":b"], "//conditions:default": []})'):
            self.assertEqual(_found(deps, "x/b.h"), [], deps)

    def test_takes_what_umbrellas_and_aliases_export(self):
        self.assertEqual(_found('["//x"]', "x/a.h", "x/b.h"), [])
        self.assertEqual(_found('[":other_a"]', "x/a.h"), [])
        self.assertEqual(len(_found('[":other_a"]', "x/b.h")), 1)

    def test_takes_textual_headers(self):
        self.assertEqual(_found('[":tables"]', "x/table.inc"), [])
        self.assertEqual(len(_found("[]", "x/table.inc")), 1)

    def test_takes_generated_headers(self):
        self.assertEqual(_found('[":frame", ":peer"]', "x/frame.pb.h", "x/peer.pb.h", "x/peer.grpc.pb.h"), [])
        self.assertEqual(_found("[]", "x/frame.pb.h"),
                         ["x/a_test.cc:2: //x:a_test includes x/frame.pb.h and has no dep //x:frame"])

    def test_refuses_private_headers_of_others(self):
        self.assertEqual(_found('[":b"]', "x/private.h"),
                         ["x/a_test.cc:2: //x:a_test includes x/private.h, which belongs to no library"])


if __name__ == "__main__":
    unittest.main()
