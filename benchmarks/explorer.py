"""How quickly the explorer follows a drag: the page in a browser, a point under the mouse, every family in turn.

    python -m benchmarks.explorer                       500 points, two seconds of dragging for each family
    python -m benchmarks.explorer --points 20000        how smoothly many points are drawn

Latency is from the pointer's movement to the frame that shows the boundary for it; what waits while a fit runs waits in it.
Goals with 500 points: 50 ms at the median, 120 ms at the 95th percentile, for all families but Gibbs sampling.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

ROOT = "document.querySelector('.separatrix-explorer').explorer"
START = f"""points => {{ const explorer = {ROOT}; Object.assign(explorer.store, {{ points }});
  explorer.showAll(); explorer.store.changed(); explorer.renewed(); }}"""
SETTLED = f"() => {ROOT}?.connected && {ROOT}.panels[0].idle && {ROOT}.panels[0].reply"
FRAMES = """() => { window.gaps = []; let last = performance.now(); window.watching = true;
  const tick = now => { window.gaps.push(now - last); last = now; if (window.watching) requestAnimationFrame(tick); };
  requestAnimationFrame(tick); }"""


def points(n: int) -> dict[str, list[float]]:
    """Two overlapping classes, as a message has them."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 2
    X = rng.normal(size=(n, 2)) + np.where(codes[:, None], 0.9, -0.9)
    rounded = X.round(4)
    return {"x": rounded[:, 0].tolist(), "y": rounded[:, 1].tolist(), "label": codes.tolist(), "weight": [1.0] * n}


def drag(page: Any, seconds: float) -> tuple[list[float], list[float]]:
    """Take the first point around in circles; latencies and gaps between frames, in milliseconds."""
    box = page.locator(".sx-plot canvas").first.bounding_box()
    start = page.evaluate(f"() => {ROOT}.panels[0].plot.toPixels({ROOT}.store.points.x[0], {ROOT}.store.points.y[0])")
    page.mouse.move(box["x"] + start[0], box["y"] + start[1])
    page.mouse.down()
    page.evaluate(f"() => {{ {ROOT}.panels[0].latencies = []; }}")
    page.evaluate(FRAMES)
    begun, step = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        angle = step / 12.0
        page.mouse.move(
            box["x"] + box["width"] * (0.5 + 0.3 * math.cos(angle)),
            box["y"] + box["height"] * (0.5 + 0.3 * math.sin(angle)),
        )
        step += 1
        time.sleep(max(0.0, begun + step / 60.0 - time.perf_counter()))
    gaps = page.evaluate("() => { window.watching = false; return window.gaps.slice(2); }")
    page.mouse.up()
    page.wait_for_function(SETTLED)
    return page.evaluate(f"() => {ROOT}.panels[0].latencies"), gaps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--families", help="A,B,C; all by default")
    chosen = parser.parse_args()
    from playwright.sync_api import sync_playwright

    code = "from separatrix.cli.main import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", code, "explore", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    found = re.search(r"http\S+", server.stdout.readline())
    assert found is not None
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        with sync_playwright() as playwright:
            arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            page = playwright.chromium.launch(executable_path=browser_path, args=arguments).new_page()
            page.goto(found.group(0))
            page.wait_for_function(SETTLED)
            page.evaluate(START, points(chosen.points))
            names = (
                chosen.families.split(",") if chosen.families else page.evaluate(f"() => [...{ROOT}.families.keys()]")
            )
            print(
                f"{'family':20} {'median':>8} {'95 %':>8} {'moves':>8} {'frames/s':>9}   ({chosen.points} points, ms)"
            )
            for name in names:
                page.select_option('[data-family="0"]', name)
                page.wait_for_function(SETTLED)
                drag(page, 0.3)  # compiled loops are loaded, caches filled
                latencies, gaps = drag(page, chosen.seconds)
                median, late = np.percentile(latencies, [50, 95]) if latencies else (math.nan, math.nan)
                print(f"{name:20} {median:8.1f} {late:8.1f} {len(latencies):8} {1e3 / np.mean(gaps):9.1f}", flush=True)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(10)


if __name__ == "__main__":
    main()
