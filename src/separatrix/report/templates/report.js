"use strict";
// Tables that sort, figures that tell their numbers, and the choice of a rule. Nothing is fetched and nothing is kept.

const numeric = (cell) => {
  const text = cell.textContent.trim().replaceAll("−", "-").replaceAll("\u202f", "");
  const value = parseFloat(text === "∞" ? "Infinity" : text);
  return Number.isNaN(value) ? null : value;
};

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], fixed = [...body.rows].filter((row) => row.classList.contains("total"));
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    if (!button.textContent.trim()) return;
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].filter((row) => !fixed.includes(row)).map((row) => {
        const cell = row.cells[column];
        return { row, number: numeric(cell), text: cell.textContent.trim() };
      });
      rows.sort((a, b) => {
        if (a.number !== null && b.number !== null) return (a.number - b.number) * (down ? -1 : 1);
        if (a.number !== null || b.number !== null) return a.number === null ? 1 : -1;
        return a.text.localeCompare(b.text) * (down ? -1 : 1);
      });
      body.append(...rows.map((one) => one.row), ...fixed);
    });
  });
}

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);
const REACH = 24;
const show = (text, x, y) => {
  tip.textContent = text;
  tip.hidden = false;
  tip.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > window.innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
};
for (const figure of document.querySelectorAll("figure[data-tips]")) {
  const svg = figure.querySelector("svg"), tips = JSON.parse(figure.dataset.tips);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    let best = null, least = REACH ** 2;
    for (const [x, y, text] of tips) {
      const far = (box.left + x * scale - event.clientX) ** 2 + (box.top + y * scale - event.clientY) ** 2;
      if (far < least) [least, best] = [far, text];
    }
    if (best === null) tip.hidden = true;
    else show(best, event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}
for (const head of document.querySelectorAll("th[data-tip]")) {
  head.addEventListener("pointerenter", (event) => show(head.dataset.tip, event.clientX, event.clientY));
  head.addEventListener("pointerleave", () => { tip.hidden = true; });
}
window.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

const percent = (share) => Number.isFinite(share) ? `${(100 * share).toFixed(1)} %` : "–";
const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
const field = (text) => /[",\n\r]/.test(text) ? `"${String(text).replaceAll('"', '""')}"` : String(text);
const short = (value) => String(Number(value.toPrecision(4)));

for (const form of document.querySelectorAll("form.chooser")) {
  // steps + 1 thresholds 0, 1/steps, …, 1. above[k][i]: rows of class k whose score is at least the i-th threshold.
  const { steps, above, classes, model, data } = JSON.parse(form.dataset.scores);
  const two = classes.length === 2, at = (name) => form.elements[name];
  const out = (name) => form.querySelector(`[data-out="${name}"]`);
  const number = (name, otherwise) => {
    const value = parseFloat(at(name).value);
    return Number.isFinite(value) && value >= 0 ? value : otherwise;
  };
  const place = (share) => Math.max(0, Math.min(steps, Math.ceil(share * steps - 1e-9)));
  const costs = () => two ? [number("false_alarm", 1), number("miss", 1)] : [number("mistake", 1), 0];

  const outcome = (threshold) => {
    const [alarm, miss] = costs(), asking = at("asking").checked, fee = number("fee", 0);
    if (!two) {
      // above[0]: right answers, above[1]: wrong ones, by the score of the answer.
      const cut = asking ? place(threshold) : 0, right = above[0][cut], wrong = above[1][cut];
      const asked = above[0][0] + above[1][0] - right - wrong, n = above[0][0] + above[1][0];
      return { right, wrong, asked, n, cost: (alarm * wrong + fee * asked) / n };
    }
    const cut = place(threshold), n = above[0][0] + above[1][0];
    let low = cut, high = cut;
    if (asking) {
      // A row is asked about where every answer is expected to cost more than asking does. The costs that have this threshold:
      const [a, b] = [threshold, 1 - threshold].map((share) => share * (alarm + miss));
      low = b > 0 ? Math.min(cut, place(fee / b)) : cut;
      high = a > 0 ? Math.max(cut, place(1 - fee / a)) : cut;
    }
    const [tn, fn] = [0, 1].map((k) => above[k][0] - above[k][low]), [fp, tp] = [0, 1].map((k) => above[k][high]);
    const asked = n - tn - fn - fp - tp;
    return { tn, fn, fp, tp, n, asked, asked0: above[0][0] - tn - fp, asked1: above[1][0] - tp - fn,
             right: tn + tp, wrong: fp + fn, cost: (alarm * fp + miss * fn + fee * asked) / n };
  };

  const command = (threshold) => {
    const [alarm, miss] = costs(), asking = at("asking").checked, fee = number("fee", 0), rows = [];
    const total = alarm + miss || 1;
    if (two) {
      const extra = asking ? `,${short(fee)}` : "";
      rows.push(["truth", ...classes, ...(asking ? ["ask"] : [])].map(field).join(","));
      rows.push(`${field(classes[0])},0,${short(threshold * total)}${extra}`);
      rows.push(`${field(classes[1])},${short((1 - threshold) * total)},0${extra}`);
    } else {
      rows.push(["truth", ...classes, ...(asking ? ["ask"] : [])].map(field).join(","));
      classes.forEach((name, k) => rows.push([field(name), ...classes.map((_, j) => (j === k ? 0 : 1)),
        ...(asking ? [short(1 - threshold)] : [])].join(",")));
    }
    return `printf '%s\\n' ${rows.map(quoted).join(" ")} > costs.csv\n` +
      `separatrix predict ${quoted(model)} new.csv --loss costs.csv -o predictions.csv`;
  };

  const draw = () => {
    const threshold = at("threshold").value / steps, found = outcome(threshold);
    for (const name of ["tn", "fp", "fn", "tp", "asked0", "asked1", "right", "wrong", "asked"]) {
      if (out(name)) out(name).textContent = found[name];
    }
    const kept = found.right + found.wrong;
    out("threshold").textContent = threshold.toFixed(3);
    out("accuracy").textContent = percent(found.right / kept);
    out("share_asked").textContent = percent(found.asked / found.n);
    out("cost").textContent = found.cost.toPrecision(3);
    if (two) {
      out("recall").textContent = percent(found.tp / (found.tp + found.fn + found.asked1));
      out("precision").textContent = percent(found.tp / (found.tp + found.fp));
    }
    for (const cell of form.querySelectorAll(".asked")) cell.hidden = !at("asking").checked;
    out("command").textContent = command(threshold);
  };
  const cheapest = () => {
    let best = 0, least = Infinity;
    for (let i = 0; i <= steps; i += 1) {
      const { cost } = outcome(i / steps);
      if (cost < least - 1e-12) [least, best] = [cost, i];
    }
    at("threshold").value = best;
    draw();
  };
  form.addEventListener("input", draw);
  form.addEventListener("submit", (event) => { event.preventDefault(); cheapest(); });
  form.querySelector("[data-copy]").addEventListener("click", (event) => {
    const done = () => { event.target.textContent = "Copied"; };
    if (navigator.clipboard) navigator.clipboard.writeText(out("command").textContent).then(done, () => {});
    const range = document.createRange();
    range.selectNodeContents(out("command"));
    window.getSelection().removeAllRanges();
    window.getSelection().addRange(range);
  });
  form.hidden = false;
  draw();
}

const opened = () => {
  const target = window.location.hash && document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
  if (target) target.closest("details")?.setAttribute("open", "");
};
window.addEventListener("hashchange", opened);
opened();
