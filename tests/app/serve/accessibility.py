"""The barriers of a page for people with a screen reader or a keyboard, as axe finds them."""

from __future__ import annotations

from pathlib import Path

import axe_core_python

from tests.chromium import Page

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def violations(tab: Page) -> list[str]:
    """The objections of axe, of whatever weight: rule and element."""
    tab.evaluate("window.found = undefined")
    tab.evaluate(AXE)
    tab.evaluate("axe.run().then(done => { window.found = done.violations })")
    tab.until("window.found !== undefined")
    found: list[str] = tab.evaluate(
        "window.found.flatMap(each => each.nodes.map(node => each.impact + ' ' + each.id + ' ' + node.html))"
    )
    return found
