"""Measure in a real browser how well our pages are read: ``python -m tests.browser.legibility``.

Each text is held against what lies behind it, by the ratio of WCAG; a theme, a version of Django
and our own colours meet only there. What a page says too faintly is printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

from .chromium import Chromium, installed
from .screenshots import WIDE, addresses
from .site import log_in, prepare, served

THEIRS = "#header, .breadcrumbs, #nav-sidebar, .skip-to-content-link, #content h2"
"""What the theme colours alone: a project chooses those colours, and its default is faint."""

FAINT = """
((theirs) => {
  const colour = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const over = (front, back) => front.slice(0, 3)
    .map((value, at) => value * front[3] + back[at] * (1 - front[3])).concat(1);
  const ground = (element) => {
    if (!element) return [255, 255, 255, 1];
    const own = colour(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(element.parentElement));
  };
  const luminance = (rgb) => rgb.slice(0, 3).map((value) => value / 255)
    .map((p) => (p <= 0.04045 ? p / 12.92 : ((p + 0.055) / 1.055) ** 2.4))
    .reduce((sum, p, at) => sum + p * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    const seen = { visibilityProperty: true, opacityProperty: true };
    if (!text || !element.checkVisibility(seen)) continue;
    if (element.closest("script, style, option, :disabled, .visually-hidden, svg")) continue;
    if (theirs && element.closest(theirs)) continue;
    const style = getComputedStyle(element);
    const back = ground(element);
    const ratio = contrast(over(colour(style.color), back), back);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) {
      found.push([text.slice(0, 40), element.tagName.toLowerCase() + "." + element.className,
                  Math.round(100 * ratio) / 100]);
    }
  }
  return found;
})
"""


def faint(browser: Chromium, base: str, *, themed: bool) -> Iterator[str]:
    """Tell of each text of our pages that is too faint, in the light and in the dark."""
    script = f"{FAINT}({json.dumps(THEIRS if themed else '')})"
    for look in ("light", "dark"):
        browser.run(f"localStorage.setItem('theme', '{look}')")
        browser.show(WIDE, 900, dark=look == "dark" and not themed)
        for name, path in addresses().items():
            browser.go(base + path)
            for text, element, ratio in browser.run(script):
                yield f"{name}, {look}: {element} {text!r} {ratio}"


def main() -> None:
    """Measure, and print what is too faint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--admin", choices=["plain", "themed"], required=True)
    is_themed = parser.parse_args().admin == "themed"
    executable = installed()
    if executable is None:
        sys.exit("Install chromium, or name one in DDC_CHROMIUM.")
    prepare(themed=is_themed)
    from .demo import fill

    fill(datetime.now(UTC))
    with served() as base:
        browser = Chromium(executable)
        try:
            log_in(browser, base)
            found = list(faint(browser, base, themed=is_themed))
        finally:
            browser.close()
    sys.stdout.write(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
