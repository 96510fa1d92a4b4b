"""Prints the tests of a JUnit report that failed, each with the beginning and the end of its message."""

import sys
import xml.etree.ElementTree as ET

BEGINNING = 700
END = 400

for case in ET.parse(sys.argv[1]).iter("testcase"):
    for found in case.findall("failure") + case.findall("error"):
        message = (found.text or found.get("message") or "").split("\nstack backtrace:")[0].strip()
        if len(message) > BEGINNING + END:
            message = f"{message[:BEGINNING]}\n[...]\n{message[-END:]}"
        print(f"\n--- {case.get('name')} ({float(case.get('time', 0)):.0f} s)\n{message}", file=sys.stderr)
