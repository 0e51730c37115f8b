"""Make docs/images/explorer.gif: two models on the same points while one of these is dragged across.

python tools/explorer_film.py          needs Chromium, playwright and pillow
"""

from __future__ import annotations

import io
import math
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

TARGET = Path(__file__).parent.parent / "docs" / "images" / "explorer.gif"
EXPLORER = "document.querySelector('.separatrix-explorer').explorer"
SETTLED = f"() => {EXPLORER}?.connected && {EXPLORER}.shownPanels.every(panel => panel.idle && panel.reply)"
WIDTH, HEIGHT, SHOWN, FRAME, STEPS = 1280, 900, (880, 588), 90, 44


def shot(page: Page) -> Image.Image:
    """What is on the screen once all fits are drawn."""
    page.wait_for_function(SETTLED)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    part = {"x": 0, "y": 0, "width": WIDTH, "height": WIDTH * SHOWN[1] // SHOWN[0]}
    picture = Image.open(io.BytesIO(page.screenshot(clip=part))).convert("RGB")
    return picture.resize(SHOWN, Image.Resampling.LANCZOS)


def frames(page: Page) -> list[Image.Image]:
    """A point of one class is taken around the other: the margin of one model and the ellipses of the other follow."""
    page.select_option("[data-control=dataset]", "separable")
    page.wait_for_function(f"() => {EXPLORER}.store.data === 'separable'")
    page.click("[data-action=two]")
    page.select_option('[data-family="0"]', "linear-svm")
    page.select_option('[data-family="1"]', "qda")
    taken = [shot(page)] * 5
    box = page.locator(".sx-plot canvas").first.bounding_box()
    assert box is not None
    x, y = page.evaluate(
        f"() => {EXPLORER}.panels[0].plot.toPixels({EXPLORER}.store.points.x[0], {EXPLORER}.store.points.y[0])"
    )
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    for k in range(1, STEPS + 1):
        turn = 2.0 * math.pi * k / STEPS
        across = x + box["width"] * 0.21 * (1.0 - math.cos(turn))
        page.mouse.move(box["x"] + across, box["y"] + y + box["height"] * 0.26 * math.sin(turn))
        taken.append(shot(page))
    page.mouse.up()
    for family in ("svm", "rda", "logistic"):
        page.select_option('[data-family="0"]', family)
        taken += [shot(page)] * 7
    return taken


def main() -> None:
    """Serve, film, write."""
    code = "from separatrix.cli.main import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", code, "explore", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    found = re.search(r"http\S+", server.stdout.readline())
    assert found is not None
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            page.goto(found.group(0))
            page.wait_for_function(SETTLED)
            taken = frames(page)
            browser.close()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(10)
    # Few pixels have the colours of the points: a band of each keeps them in the palette.
    sample = taken[len(taken) // 2].copy()
    for k, colour in enumerate(("#0072b2", "#c75800", "#22262b", "#00694d", "#1f6aa5")):
        sample.paste(colour, (0, 60 * k, sample.width // 4, 60 * k + 60))
    palette = sample.quantize(128)
    drawn = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in taken]
    TARGET.parent.mkdir(exist_ok=True)
    drawn[0].save(TARGET, save_all=True, append_images=drawn[1:], duration=FRAME, loop=0, optimize=True)
    print(f"{TARGET.name}: {len(drawn)} frames, {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
