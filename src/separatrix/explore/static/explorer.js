// src/dom.ts
function e(e, t, n) {
	for (let [n, r] of Object.entries(t)) r != null && r !== !1 && (n.startsWith("on") && typeof r == "function" ? e.addEventListener(n.slice(2), r) : n === "value" || n === "checked" || n === "disabled" ? e[n] = r : e.setAttribute(n, r === !0 ? "" : String(r)));
	for (let t of n) t && e.append(t);
}
function t(t, n = {}, ...r) {
	let i = document.createElement(t);
	return e(i, n, r), i;
}
function n(t, n = {}, ...r) {
	let i = document.createElementNS("http://www.w3.org/2000/svg", t);
	return e(i, n, r), i;
}
function r(e, t, n) {
	let r = (t - e) / n, i = 10 ** Math.floor(Math.log10(r)), a = [
		1,
		2,
		5,
		10
	].map((e) => e * i).find((e) => e >= r) ?? 10 * i, o = [];
	for (let n = Math.ceil(e / a); n * a <= t + 1e-9 * a; n++) o.push(Number((n * a).toPrecision(12)));
	return o;
}
function i(e) {
	return e !== 0 && (Math.abs(e) >= 1e5 || Math.abs(e) < .001) ? e.toExponential(0).replace("e+", "e") : String(Number(e.toPrecision(4)));
}
// src/controls.ts
var a = 0, o = (e) => `sx-${e}-${++a}`;
function s(e) {
	return Object.fromEntries(e.controls.map((e) => [e.name, e.default]));
}
var c = 240;
function l(e, t) {
	if (t === "inf" || t === Infinity) return 241;
	let n = Number(t);
	return e.kind === "log" ? Math.round(c * Math.log(n / e.low) / Math.log(e.high / e.low)) : e.kind === "whole" ? n : Math.round(c * (n - e.low) / (e.high - e.low));
}
function u(e, t) {
	if (e.unlimited && t > c) return "inf";
	if (e.kind === "whole") return t;
	let n = t / c, r = e.kind === "log" ? e.low * (e.high / e.low) ** n : e.low + n * (e.high - e.low);
	return Math.min(e.high, Math.max(e.low, Number(r.toPrecision(4))));
}
var d = (e) => e === "inf" ? "∞" : i(Number(e));
function f(e, n, r) {
	let i = t("div", { class: "sx-controls" }), a = [], s = (e, t, i) => {
		n[e] = t;
		for (let e of a) e();
		r(e, t, i);
	};
	for (let r of e.controls) {
		let f = o(r.name);
		if (r.kind === "choice") {
			let e = t("select", {
				id: f,
				"data-control": r.name,
				onchange: () => s(r.name, r.options[e.selectedIndex][0], !1)
			}, ...r.options.map(([e, i]) => {
				let a = t("option", {}, i);
				return a.selected = e === n[r.name], a;
			}));
			i.append(t("div", { class: "sx-control" }, t("label", { for: f }, r.title), e));
		} else if (r.kind === "switch") {
			let e = t("input", {
				id: f,
				type: "checkbox",
				"data-control": r.name,
				checked: !!n[r.name],
				onchange: () => s(r.name, e.checked, !1)
			});
			i.append(t("div", { class: "sx-control sx-tick" }, e, t("label", { for: f }, r.title)));
		} else {
			let e = r.kind === "whole", o = t("output", { for: f }, d(n[r.name])), p = t("input", {
				id: f,
				type: "range",
				"data-control": r.name,
				min: e ? r.low : 0,
				max: e ? r.high : c + +!!r.unlimited,
				step: 1,
				value: String(l(r, n[r.name])),
				"aria-valuetext": d(n[r.name]),
				oninput: () => s(r.name, u(r, Number(p.value)), !0),
				onchange: () => s(r.name, u(r, Number(p.value)), !1)
			});
			a.push(() => {
				o.textContent = d(n[r.name]), p.value = String(l(r, n[r.name])), p.setAttribute("aria-valuetext", d(n[r.name]));
			}), i.append(t("div", { class: "sx-control" }, t("label", {
				for: f,
				title: r.help
			}, r.title), o, p));
		}
		if (r.pad) {
			let t = p(r, e.controls.find((e) => e.name === r.pad), n, s);
			a.push(t.refresh), i.append(t.element);
		}
	}
	return i;
}
function p(e, r, a, o) {
	let s = n("circle", {
		r: 7,
		class: "sx-knob"
	}), c = () => {
		let t = (Number(a[e.name]) - e.low) / (e.high - e.low), n = (Number(a[r.name]) - r.low) / (r.high - r.low);
		s.setAttribute("cx", String(8 + t * 116)), s.setAttribute("cy", String(124 - n * 116)), f.setAttribute("aria-valuetext", `${e.title} ${i(Number(a[e.name]))}, ${r.title} ${i(Number(a[r.name]))}`), f.setAttribute("aria-valuenow", String(Math.round(100 * t)));
	}, l = (t, n, i) => {
		let a = (e, t) => Number((e.low + Math.min(1, Math.max(0, t)) * (e.high - e.low)).toFixed(3));
		o(e.name, a(e, t), !0), o(r.name, a(r, n), i), c();
	}, u = (e, t) => {
		let n = f.getBoundingClientRect();
		l((e.clientX - n.left - 8) / (n.width - 16), (n.bottom - e.clientY - 8) / (n.height - 16), t);
	}, d = !1, f = n("svg", {
		viewBox: "0 0 132 132",
		class: "sx-pad",
		tabindex: "0",
		role: "slider",
		"aria-label": "α and γ together: arrow keys move both",
		"data-control": "pad",
		"aria-valuemin": "0",
		"aria-valuemax": "100",
		onpointerdown: (e) => {
			d = !0, f.setPointerCapture(e.pointerId), u(e, !0);
		},
		onpointermove: (e) => d && u(e, !0),
		onpointerup: (e) => {
			d = !1, u(e, !1);
		},
		onkeydown: (t) => {
			let n = {
				ArrowLeft: [-.05, 0],
				ArrowRight: [.05, 0],
				ArrowUp: [0, .05],
				ArrowDown: [0, -.05]
			};
			t.key in n && (t.preventDefault(), l(Number(a[e.name]) + n[t.key][0], Number(a[r.name]) + n[t.key][1], !1));
		}
	}, n("rect", {
		x: 1,
		y: 1,
		width: 130,
		height: 130,
		rx: 6,
		class: "sx-padding"
	}), s);
	return c(), {
		element: t("div", { class: "sx-control sx-padbox" }, f, t("p", { class: "sx-note" }, "Across α, upwards γ. Top left is LDA, top right QDA; at the bottom the covariances are spheres.")),
		refresh: c
	};
}
function m(e, n, r) {
	let a = n.length, s = o("decide"), c = () => ({
		loss: n.map((e, t) => n.map((e, n) => Number(t !== n))),
		reject: null,
		priors: null
	}), l = t("input", {
		id: s,
		type: "checkbox",
		checked: e !== null,
		"data-control": "decide",
		onchange: () => r(l.checked ? c() : null, !1)
	}), u = t("div", { class: "sx-decision" }, t("div", { class: "sx-control sx-tick" }, l, t("label", { for: s }, "Decide by losses and priors")));
	if (!e) return u;
	let d = (i, a) => {
		let o = t("input", {
			type: "number",
			step: "0.5",
			value: String(e.loss[i][a]),
			"aria-label": `Loss of saying ${n[a]} when it is ${n[i]}`,
			"data-loss": `${i},${a}`,
			oninput: () => {
				Number.isFinite(o.valueAsNumber) && (e.loss[i][a] = o.valueAsNumber, r(e, !0));
			}
		});
		return t("td", {}, o);
	};
	u.append(t("div", { class: "sx-scroll" }, t("table", { class: "sx-losses" }, t("thead", {}, t("tr", {}, t("th", {}, "loss"), ...n.map((e) => t("th", { scope: "col" }, `→ ${e}`)))), t("tbody", {}, ...n.map((e, r) => t("tr", {}, t("th", { scope: "row" }, e), ...n.map((e, t) => d(r, t))))))));
	let f = o("reject"), p = t("output", { for: f }, e.reject === null ? "never" : i(e.reject)), m = t("input", {
		id: f,
		type: "range",
		min: 0,
		max: 1.02,
		step: .02,
		value: String(e.reject ?? 1.02),
		"data-control": "reject",
		oninput: () => {
			e.reject = Number(m.value) > 1.001 ? null : Number(m.value), p.textContent = e.reject === null ? "never" : i(e.reject), r(e, !0);
		}
	});
	u.append(t("div", { class: "sx-control" }, t("label", { for: f }, "reject where it costs more than"), p, m));
	let h = e.priors ?? n.map(() => 1 / a), g = o("priors"), _ = t("input", {
		id: g,
		type: "checkbox",
		checked: e.priors !== null,
		"data-control": "priors",
		onchange: () => {
			e.priors = _.checked ? h : null, r({ ...e }, !1);
		}
	});
	return u.append(t("div", { class: "sx-control sx-tick" }, _, t("label", { for: g }, "priors other than in the data"))), e.priors && n.forEach((n, a) => {
		let s = o("prior"), c = t("output", { for: s }, i(e.priors[a])), l = t("input", {
			id: s,
			type: "range",
			min: .01,
			max: 1,
			step: .01,
			value: String(e.priors[a]),
			"data-prior": a,
			oninput: () => {
				e.priors[a] = Number(l.value), c.textContent = i(Number(l.value)), r(e, !0);
			}
		});
		u.append(t("div", { class: "sx-control" }, t("label", { for: s }, `weight of ${n}`), c, l));
	}), u;
}
function h(e) {
	let t = getComputedStyle(e), n = (e) => t.getPropertyValue(e).trim();
	return {
		page: n("--page"),
		ink: n("--ink"),
		muted: n("--muted"),
		line: n("--line"),
		accent: n("--accent"),
		classes: [
			0,
			1,
			2,
			3,
			4,
			5
		].map((e) => n(`--class-${e}`))
	};
}
function g(e, t) {
	return t === null ? e.ink : t < 0 ? e.muted : e.classes[t % e.classes.length];
}
function _(e) {
	let t = e.replace("#", "");
	return [
		0,
		2,
		4
	].map((e) => parseInt(t.slice(e, e + 2), 16));
}
function v(e, t) {
	let n = (e) => Number(e.toFixed(2)), r = n(t * .89), i = n(t * 1.15), a = n(t * .42), o = n(t * 1.1);
	switch (e % 6) {
		case 0: return `M${n(-t)} 0A${n(t)} ${n(t)} 0 1 0 ${n(t)} 0A${n(t)} ${n(t)} 0 1 0 ${n(-t)} 0Z`;
		case 1: return `M${-r} ${-r}H${r}V${r}H${-r}Z`;
		case 2: return `M0 ${-i}L${i} ${n(t * .85)}H${-i}Z`;
		case 3: return `M0 ${-i}L${i} 0L0 ${i}L${-i} 0Z`;
		case 4: return `M0 ${i}L${i} ${n(-t * .85)}H${-i}Z`;
		default: return `M${-a} ${-o}H${a}V${-a}H${o}V${a}H${a}V${o}H${-a}V${a}H${-o}V${-a}H${-a}Z`;
	}
}
function y(e, t) {
	let n = t > 5e3 ? 1.8 : t > 1200 ? 2.8 : t > 400 ? 3.6 : 4.6;
	return e === 0 ? n * .6 : n * Math.min(3, Math.sqrt(e));
}
// src/plot.ts
var b = 46, x = 38, S = 8, C = 8, w = {
	boundary: {
		width: 2.2,
		dash: [],
		alpha: 1
	},
	level: {
		width: 1,
		dash: [2, 3],
		alpha: .45
	},
	margin: {
		width: 1.4,
		dash: [7, 4],
		alpha: .9
	},
	ellipse: {
		width: 1.3,
		dash: [],
		alpha: .75
	},
	direction: {
		width: 1.6,
		dash: [
			10,
			4,
			2,
			4
		],
		alpha: .9
	},
	truth: {
		width: 2,
		dash: [2, 4],
		alpha: .9
	},
	draw: {
		width: 1,
		dash: [],
		alpha: .18
	},
	mode: {
		width: 1.2,
		dash: [6, 3],
		alpha: .8
	},
	machine: {
		width: 1,
		dash: [4, 4],
		alpha: .6
	}
}, T = class {
	element;
	canvas;
	axes;
	regions = document.createElement("canvas");
	dots = document.createElement("canvas");
	stale = {
		regions: !0,
		dots: !0,
		axes: !0
	};
	waiting = 0;
	width = 100;
	height = 100;
	ratio = 1;
	scene;
	theme;
	reply = null;
	frame = null;
	showLevels = !0;
	showExtras = !0;
	drawn = 0;
	constructor(e, t) {
		this.canvas = document.createElement("canvas"), this.canvas.tabIndex = 0, this.canvas.setAttribute("role", "application"), this.canvas.setAttribute("aria-label", e), this.canvas.setAttribute("aria-describedby", t), this.axes = n("svg", {
			class: "sx-axes",
			"aria-hidden": "true"
		}), this.element = document.createElement("div"), this.element.className = "sx-plot", this.element.append(this.axes, this.canvas), new ResizeObserver(() => this.resize()).observe(this.element);
	}
	update(e, t, n) {
		this.scene = e, this.theme = t, (n.points || n.view || n.theme) && (this.stale.dots = !0), (n.reply || n.view || n.theme) && (this.stale.regions = !0), n.reply && (this.stale.dots = !0), (n.view || n.theme) && (this.stale.axes = !0), this.schedule();
	}
	schedule() {
		this.waiting ||= requestAnimationFrame(() => this.paint());
	}
	resize() {
		let e = this.element.getBoundingClientRect();
		this.width = Math.max(60, e.width - b - C), this.height = Math.max(60, e.height - S - x), this.ratio = window.devicePixelRatio || 1;
		for (let e of [
			this.canvas,
			this.regions,
			this.dots
		]) e.width = Math.round(this.width * this.ratio), e.height = Math.round(this.height * this.ratio);
		this.stale = {
			regions: !0,
			dots: !0,
			axes: !0
		}, this.scene && this.schedule();
	}
	toPlane(e, t) {
		let { x: n, y: r } = this.scene.view;
		return [n[0] + e / this.width * (n[1] - n[0]), r[1] - t / this.height * (r[1] - r[0])];
	}
	toPixels(e, t) {
		let { x: n, y: r } = this.scene.view;
		return [(e - n[0]) / (n[1] - n[0]) * this.width, (r[1] - t) / (r[1] - r[0]) * this.height];
	}
	get size() {
		return [this.width, this.height];
	}
	at(e) {
		let t = this.canvas.getBoundingClientRect();
		return [e.clientX - t.left, e.clientY - t.top];
	}
	hit(e, t, n) {
		let { x: r, y: i } = this.scene.points, a = -1, o = n * n;
		for (let n = r.length - 1; n >= 0; n--) {
			let [s, c] = this.toPixels(r[n], i[n]), l = (s - e) ** 2 + (c - t) ** 2;
			l < o && ([a, o] = [n, l]);
		}
		return a;
	}
	paint() {
		if (this.waiting = 0, !this.scene) return;
		this.stale.regions && this.paintRegions(), this.stale.dots && this.paintDots(), this.stale.axes && this.paintAxes(), this.stale = {
			regions: !1,
			dots: !1,
			axes: !1
		};
		let e = this.canvas.getContext("2d");
		e.setTransform(1, 0, 0, 1, 0, 0), e.clearRect(0, 0, this.canvas.width, this.canvas.height), e.globalAlpha = this.frame ? .45 : 1, e.drawImage(this.regions, 0, 0), e.globalAlpha = 1, e.drawImage(this.dots, 0, 0), e.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		for (let t of this.scene.held) this.dot(e, t, !1);
		this.frame && (this.stroke(e, this.frame.paths, this.theme.ink, {
			width: 2.6,
			dash: [],
			alpha: 1
		}), this.frame.place !== null && this.ring(e, this.frame.place, 13, this.theme.ink, 2)), this.scene.selected >= 0 && this.ring(e, this.scene.selected, 11, this.theme.accent, 2.5), this.scene.cursor && this.cross(e, this.scene.cursor), this.drawn++;
	}
	shape(e) {
		let t = new Path2D();
		for (let n of e) for (let e of n) {
			for (let n = 0; n < e.length; n += 2) {
				let [r, i] = this.toPixels(e[n], e[n + 1]);
				n ? t.lineTo(r, i) : t.moveTo(r, i);
			}
			t.closePath();
		}
		return t;
	}
	stroke(e, t, n, r) {
		e.beginPath();
		for (let n of t) for (let t = 0; t < n.length; t += 2) {
			let [r, i] = this.toPixels(n[t], n[t + 1]);
			t ? e.lineTo(r, i) : e.moveTo(r, i);
		}
		e.save(), e.globalAlpha *= r.alpha, e.strokeStyle = n, e.lineWidth = r.width, e.lineJoin = "round", e.setLineDash(r.dash), e.stroke(), e.restore();
	}
	paintRegions() {
		let e = this.regions.getContext("2d");
		if (e.setTransform(1, 0, 0, 1, 0, 0), e.clearRect(0, 0, this.regions.width, this.regions.height), !this.reply || this.reply.error) return;
		e.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		let { reply: t, theme: n } = this, r = Uint8Array.from(atob(t.shade), (e) => e.charCodeAt(0));
		for (let i of t.regions) {
			let a = this.shape(i.shapes);
			if (e.save(), i.action < 0) e.fillStyle = k(e, n.muted), e.fill(a, "evenodd");
			else {
				let o = g(n, i.action);
				e.globalAlpha = .1, e.fillStyle = o, e.fill(a, "evenodd"), e.globalAlpha = 1, e.clip(a, "evenodd");
				let s = t.grid, [c, l] = this.toPixels(t.view.x[0], t.view.y[0]), [u, d] = this.toPixels(t.view.x[1], t.view.y[1]), f = (u - c) / (s - 1), p = (l - d) / (s - 1);
				e.drawImage(O(r, s, o), c - f / 2, d - p / 2, f * s, p * s);
			}
			e.restore();
		}
		let i = this.showExtras ? t.extras : [];
		for (let t of i) t.type === "area" && (e.save(), e.fillStyle = k(e, n.ink), e.fill(this.shape(t.shapes), "evenodd"), e.restore());
		if (this.showLevels) for (let n of t.levels) this.drawLines(e, n);
		for (let t of i) t.type === "lines" && this.drawLines(e, t);
		this.stroke(e, t.boundary, n.ink, w.boundary);
	}
	drawLines(e, t) {
		this.stroke(e, t.paths, g(this.theme, t.action), w[t.role] ?? w.level);
	}
	paintDots() {
		let e = this.dots.getContext("2d");
		e.setTransform(1, 0, 0, 1, 0, 0), e.clearRect(0, 0, this.dots.width, this.dots.height), e.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		let { points: t, held: n } = this.scene, r = t.x.length, i = new Set(this.reply && !this.reply.error ? this.reply.measures.wrong : []), a = new Set(n);
		for (let t = 0; t < r; t++) a.has(t) || this.dot(e, t, i.has(t));
		if (this.reply && !this.reply.error && this.showExtras) for (let t of this.reply.extras) t.type === "rings" && this.drawRings(e, t);
	}
	dot(e, t, n) {
		let { points: r } = this.scene, i = r.x.length, [a, o] = this.toPixels(r.x[t], r.y[t]), s = y(r.weight[t], i), c = g(this.theme, r.label[t]);
		if (i > 5e3) {
			e.fillStyle = c, e.fillRect(a - s, o - s, 2 * s, 2 * s);
			return;
		}
		e.save(), e.translate(a, o);
		let l = ee(r.label[t], s);
		e.fillStyle = c, e.globalAlpha = r.weight[t] === 0 ? .25 : .92, e.fill(l), e.globalAlpha = 1, e.lineWidth = n ? 1.6 : 1, e.strokeStyle = n ? this.theme.ink : this.theme.page, e.stroke(l), e.restore();
	}
	drawRings(e, t) {
		let n = this.scene.points.x.length;
		t.places.forEach((r, i) => {
			if (!(r >= n)) {
				if (t.role === "slack") {
					e.save(), e.globalAlpha = .16;
					let [n, a] = this.toPixels(this.scene.points.x[r], this.scene.points.y[r]);
					e.fillStyle = this.theme.ink, e.beginPath(), e.arc(n, a, Math.min(26, 7 + 6 * (t.sizes?.[i] ?? 0)), 0, 7), e.fill(), e.restore();
				} else this.ring(e, r, y(1, n) + 4, this.theme.ink, 1.3);
			}
		});
	}
	ring(e, t, n, r, i) {
		if (t >= this.scene.points.x.length) return;
		let [a, o] = this.toPixels(this.scene.points.x[t], this.scene.points.y[t]);
		e.beginPath(), e.arc(a, o, n, 0, 7), e.strokeStyle = r, e.lineWidth = i, e.stroke();
	}
	cross(e, t) {
		let [n, r] = this.toPixels(...t);
		e.beginPath(), e.moveTo(n - 12, r), e.lineTo(n + 12, r), e.moveTo(n, r - 12), e.lineTo(n, r + 12), e.strokeStyle = this.theme.accent, e.lineWidth = 2, e.stroke();
	}
	paintAxes() {
		let { view: e, axes: t } = this.scene, a = this.width, o = this.height;
		this.axes.replaceChildren(), this.axes.setAttribute("viewBox", `0 0 ${a + b + C} ${o + S + x}`);
		let s = n("g", { transform: `translate(${b} ${S})` });
		s.append(n("rect", {
			width: a,
			height: o,
			class: "sx-frame"
		}));
		for (let t of r(...e.x, Math.max(2, a / 90))) {
			let r = this.toPixels(t, e.y[0])[0];
			s.append(n("line", {
				x1: r,
				x2: r,
				y1: o,
				y2: o + 4
			}), n("text", {
				x: r,
				y: o + 16,
				"text-anchor": "middle"
			}, i(t)));
		}
		for (let t of r(...e.y, Math.max(2, o / 70))) {
			let r = this.toPixels(e.x[0], t)[1];
			s.append(n("line", {
				x1: -4,
				x2: 0,
				y1: r,
				y2: r
			}), n("text", {
				x: -7,
				y: r + 3.5,
				"text-anchor": "end"
			}, i(t)));
		}
		s.append(n("text", {
			x: a / 2,
			y: o + 32,
			"text-anchor": "middle",
			class: "sx-name"
		}, E(t[0], a / 7)), n("text", {
			x: -o / 2,
			y: -35,
			transform: "rotate(-90)",
			"text-anchor": "middle",
			class: "sx-name"
		}, E(t[1], o / 7))), this.axes.append(s);
	}
};
function E(e, t) {
	let n = Math.max(6, Math.floor(t));
	return e.length > n ? `${e.slice(0, n - 1)}…` : e;
}
var D = /* @__PURE__ */ new Map();
function ee(e, t) {
	let n = `${e % 6} ${t.toFixed(2)}`, r = D.get(n);
	return r || D.set(n, r = new Path2D(v(e, t))), r;
}
function O(e, t, n) {
	let r = document.createElement("canvas");
	r.width = r.height = t;
	let i = r.getContext("2d"), a = i.createImageData(t, t), [o, s, c] = _(n);
	for (let n = 0; n < t; n++) for (let r = 0; r < t; r++) {
		let i = 4 * ((t - 1 - n) * t + r);
		a.data[i] = o, a.data[i + 1] = s, a.data[i + 2] = c, a.data[i + 3] = Math.round(.25 * e[n * t + r]);
	}
	return i.putImageData(a, 0, 0), r;
}
function k(e, t) {
	let n = document.createElement("canvas");
	n.width = n.height = 10;
	let r = n.getContext("2d");
	r.globalAlpha = .45, r.strokeStyle = t, r.lineWidth = 1.2, r.beginPath();
	for (let e of [
		-10,
		0,
		10
	]) r.moveTo(e, 10), r.lineTo(e + 10, 0);
	return r.stroke(), e.createPattern(n, "repeat") ?? t;
}
// src/exports.ts
var A = 640, j = 520, M = 52, N = 30;
function te(e, t, a, o) {
	let { view: s, points: c, axes: l } = e, u = (e) => M + (e - s.x[0]) / (s.x[1] - s.x[0]) * 574, d = (e) => 476 - (e - s.y[0]) / (s.y[1] - s.y[0]) * 446, f = (e, t) => {
		let n = "";
		for (let t = 0; t < e.length; t += 2) n += `${t ? "L" : "M"}${u(e[t]).toFixed(2)} ${d(e[t + 1]).toFixed(2)}`;
		return t ? `${n}Z` : n;
	}, p = (e) => e.flat().map((e) => f(e, !0)).join(""), m = (e, t, r) => {
		let i = w[r] ?? w.level;
		return n("path", {
			d: e.map((e) => f(e, !1)).join(""),
			fill: "none",
			stroke: t,
			"stroke-width": i.width,
			"stroke-dasharray": i.dash.join(" "),
			opacity: i.alpha
		});
	}, h = n("svg", {
		xmlns: "http://www.w3.org/2000/svg",
		viewBox: `0 0 ${A} ${j}`,
		width: A,
		height: j,
		"font-family": "system-ui, sans-serif",
		"font-size": 12
	});
	h.append(n("title", {}, o), n("rect", {
		width: A,
		height: j,
		fill: a.page
	})), h.append(n("clipPath", { id: "frame" }, n("rect", {
		x: M,
		y: N,
		width: 574,
		height: 446
	})));
	let _ = n("g", { "clip-path": "url(#frame)" });
	if (t && !t.error) {
		let e = Uint8Array.from(atob(t.shade), (e) => e.charCodeAt(0)), r = t.grid, i = 574 / (r - 1), o = 446 / (r - 1);
		t.regions.forEach((s, c) => {
			let l = g(a, s.action), f = p(s.shapes);
			h.append(n("clipPath", { id: `region-${c}` }, n("path", {
				d: f,
				"clip-rule": "evenodd"
			}))), _.append(n("path", {
				d: f,
				fill: l,
				"fill-opacity": .1,
				"fill-rule": "evenodd"
			})), s.action >= 0 && _.append(n("g", { "clip-path": `url(#region-${c})` }, n("image", {
				href: O(e, r, l).toDataURL(),
				x: u(t.view.x[0]) - i / 2,
				y: d(t.view.y[1]) - o / 2,
				width: i * r,
				height: o * r,
				preserveAspectRatio: "none"
			})));
		});
		for (let e of t.levels) _.append(m(e.paths, a.ink, "level"));
		for (let e of t.extras) e.type === "lines" && _.append(m(e.paths, g(a, e.action), e.role));
		_.append(m(t.boundary, a.ink, "boundary"));
	}
	for (let e = 0; e < c.x.length; e++) _.append(n("path", {
		d: v(c.label[e], y(c.weight[e], c.x.length)),
		transform: `translate(${u(c.x[e]).toFixed(2)} ${d(c.y[e]).toFixed(2)})`,
		fill: g(a, c.label[e]),
		stroke: a.page
	}));
	h.append(_, n("rect", {
		x: M,
		y: N,
		width: 574,
		height: 446,
		fill: "none",
		stroke: a.muted
	}));
	let b = (e, t) => h.append(n("text", {
		fill: a.muted,
		...e
	}, t));
	for (let e of r(...s.x, 6)) b({
		x: u(e),
		y: 493,
		"text-anchor": "middle"
	}, i(e));
	for (let e of r(...s.y, 6)) b({
		x: 45,
		y: d(e) + 4,
		"text-anchor": "end"
	}, i(e));
	return b({
		x: 339,
		y: 512,
		"text-anchor": "middle",
		fill: a.ink
	}, l[0]), b({
		x: -253,
		y: 14,
		transform: "rotate(-90)",
		"text-anchor": "middle",
		fill: a.ink
	}, l[1]), b({
		x: M,
		y: 19,
		fill: a.ink,
		"font-size": 14
	}, o), new XMLSerializer().serializeToString(h);
}
async function ne(e) {
	let t = new Image(), n = URL.createObjectURL(new Blob([e], { type: "image/svg+xml" }));
	await new Promise((e, r) => {
		t.onload = e, t.onerror = r, t.src = n;
	});
	let r = document.createElement("canvas");
	return [r.width, r.height] = [2 * A, 2 * j], r.getContext("2d").drawImage(t, 0, 0, 2 * A, 2 * j), URL.revokeObjectURL(n), new Promise((e) => r.toBlob((t) => e(t), "image/png"));
}
function P(e) {
	let t = (e) => `"${e.replaceAll("\"", "\"\"").replace(/\s/g, " ")}"`, { x: n, y: r, label: i, weight: a } = e.points, o = n.map((o, s) => [
		n[s],
		r[s],
		i[s],
		a[s],
		t(e.classes[i[s]])
	].join(","));
	return [
		`${t(e.axes[0])},${t(e.axes[1])},label,weight,class`,
		...o,
		""
	].join("\n");
}
function F(e, t) {
	let n = document.createElement("a");
	n.href = URL.createObjectURL(t), n.download = e, n.click(), setTimeout(() => URL.revokeObjectURL(n.href), 1e3);
}
// src/charts.ts
var I = 300, re = 172, L = 40, ie = 8;
function R(e, t) {
	let n = e.filter((e) => Number.isFinite(e) && (!t || e > 0)), r = Math.min(...n), i = Math.max(...n);
	return n.length || ([r, i] = [0, 1]), r === i && ([r, i] = [r - .5, i + .5]), [r, i];
}
function z(e, a) {
	let o = (e) => e.map(Number), s = e.series.map((e) => ({
		...e,
		x: o(e.x),
		y: o(e.y)
	})), c = !!e.log, l = (e) => c ? Math.log10(Math.max(e, 1e-300)) : e, u = R(s.flatMap((e) => e.x), !1), d = R(s.flatMap((e) => e.y), c).map(l);
	e.ylim ? d = e.ylim : c || (d = [d[0] >= 0 ? 0 : d[0], d[1] + .06 * (d[1] - d[0])]);
	let f = (e) => L + (e - u[0]) / (u[1] - u[0]) * 252, p = (e) => 138 - (l(e) - d[0]) / (d[1] - d[0]) * 130, m = n("svg", {
		viewBox: `0 0 ${I} ${re}`,
		role: "img",
		"aria-label": `${e.title}: ${e.ylabel} against ${e.xlabel}. ${ae(s)}`
	}), h = `sx-clip-${Math.random().toString(36).slice(2)}`;
	m.append(n("clipPath", { id: h }, n("rect", {
		x: L,
		y: 6,
		width: 252,
		height: 134
	})));
	for (let e of r(...u, 4)) m.append(n("text", {
		x: f(e),
		y: 152,
		"text-anchor": "middle"
	}, i(e)));
	for (let e of r(...d, 3)) {
		let t = 138 - (e - d[0]) / (d[1] - d[0]) * 130;
		m.append(n("line", {
			x1: L,
			x2: 292,
			y1: t,
			y2: t,
			class: "sx-rule"
		}), n("text", {
			x: 35,
			y: t + 3.5,
			"text-anchor": "end"
		}, c ? `1e${e}` : i(e)));
	}
	for (let t of e.marks ?? []) m.append(n("line", {
		x1: f(Number(t)),
		x2: f(Number(t)),
		y1: ie,
		y2: 138,
		class: "sx-mark"
	}));
	let _ = n("g", { "clip-path": `url(#${h})` });
	for (let e of s) _.append(...oe(e, f, p, a));
	m.append(_), m.append(n("text", {
		x: 166,
		y: 168,
		"text-anchor": "middle",
		class: "sx-name"
	}, e.xlabel));
	let v = s.filter((e) => e.name);
	return t("figure", { class: "sx-chart" }, t("h4", {}, e.title), m, v.length > 1 && t("ul", { class: "sx-legend" }, ...v.map((e) => {
		let n = t("i", { class: `sx-key sx-${e.kind}` });
		return n.style.setProperty("--c", g(a, e.action)), t("li", {}, n, e.name);
	})), e.note ? t("figcaption", {}, e.note) : null);
}
function ae(e) {
	return e.filter((e) => e.name && e.y.length).slice(0, 6).map((e) => `${e.name}: from ${i(Number(e.y[0]))} to ${i(Number(e.y[e.y.length - 1]))}`).join("; ");
}
function oe(e, t, r, i) {
	let a = g(i, e.action);
	if (e.kind === "bars") return e.y.map((i, o) => n("rect", {
		x: t(e.x[o]) + .4,
		width: Math.max(.5, t(e.x[o + 1]) - t(e.x[o]) - .8),
		y: r(i),
		height: Math.max(0, r(0) - r(i)),
		fill: a,
		opacity: e.action === null ? .22 : .5
	}));
	if (e.kind === "dots") return [B(e, t, r, a, "1.4", ""), ...e.x.map((i, o) => n("circle", {
		cx: t(i),
		cy: r(e.y[o]),
		r: 2.6,
		fill: a
	}))];
	let o = e.kind === "thin", s = B(e, t, r, a, o ? "1" : "2", e.kind === "dashed" ? "5 3" : "");
	return o && s.setAttribute("opacity", "0.4"), [s];
}
function B(e, t, r, i, a, o) {
	return n("path", {
		d: e.x.map((n, i) => `${i ? "L" : "M"}${t(n).toFixed(1)} ${Math.max(-999, Math.min(999, r(e.y[i]))).toFixed(1)}`).join(""),
		fill: "none",
		stroke: i,
		"stroke-width": a,
		"stroke-dasharray": o
	});
}
function V(e) {
	return t("div", { class: "sx-chart" }, t("h4", {}, e.title), t("div", {
		class: "sx-scroll",
		tabindex: "0",
		role: "region",
		"aria-label": e.title
	}, t("table", {}, t("thead", {}, t("tr", {}, ...e.heads.map((e) => t("th", { scope: "col" }, e)))), t("tbody", {}, ...e.rows.map((e) => t("tr", {}, ...e.map((e) => t("td", {}, String(e)))))))), e.note ? t("p", { class: "sx-note" }, e.note) : null);
}
function H(e, n) {
	let { truths: r, actions: a, counts: o } = e.confusion, s = Math.max(1, ...o.flat()), c = (e) => e < 0 ? "reject" : n[e];
	return t("div", { class: "sx-chart" }, t("h4", {}, "Confusion"), t("div", {
		class: "sx-scroll",
		tabindex: "0",
		role: "region",
		"aria-label": "Confusion"
	}, t("table", { class: "sx-confusion" }, t("thead", {}, t("tr", {}, t("th", { scope: "col" }, "truth"), ...a.map((e) => t("th", { scope: "col" }, `→ ${c(e)}`)))), t("tbody", {}, ...r.map((e, n) => t("tr", {}, t("th", { scope: "row" }, c(e)), ...o[n].map((e) => {
		let n = t("td", {}, i(e));
		return n.style.setProperty("--shade", String(e / s)), n;
	})))))));
}
function U(e) {
	let t = e.roc;
	return t ? {
		type: "chart",
		title: `ROC curve, area ${t.area.toFixed(3)}`,
		xlabel: "false positive rate",
		ylabel: "true positive rate",
		ylim: [0, 1],
		series: [{
			x: [0, 1],
			y: [0, 1],
			name: "",
			kind: "thin",
			action: null
		}, {
			x: t.false,
			y: t.true,
			name: "",
			kind: "line",
			action: null
		}]
	} : null;
}
// src/panel.ts
var W = 101, G = 61, K = 320, se = 120, q = /* @__PURE__ */ new Set([
	"EXACT",
	"SEPARATES",
	"SAMPLED",
	"CONVERGED",
	"STATIONARY",
	"LEVEL"
]), J = class {
	app;
	index;
	element;
	plot;
	menu;
	about = t("p", { class: "sx-about" });
	status = t("div", {
		class: "sx-status",
		role: "status"
	});
	readout = t("p", {
		class: "sx-readout",
		"aria-live": "off"
	}, "\xA0");
	controls = t("div");
	decision = t("div");
	details = t("div", { class: "sx-details" });
	film = t("div", { class: "sx-film" });
	sent = 0;
	sentAt = 0;
	shown = 0;
	changes = [];
	sentChanges = [];
	detailed = 0;
	later = 0;
	pending = !1;
	draft = !1;
	timer = 0;
	playing = 0;
	reply = null;
	latencies = [];
	constructor(e, n) {
		this.app = e, this.index = n;
		let r = o("family"), i = o("help");
		this.menu = t("select", {
			id: r,
			"data-family": n,
			onchange: () => this.choose(this.menu.value)
		}), this.plot = new T(`Points and regions, panel ${n + 1}`, i), this.element = t("section", {
			class: "sx-panel",
			"aria-label": `Panel ${n + 1}`
		}, t("div", { class: "sx-stage" }, t("div", { class: "sx-head" }, t("label", {
			for: r,
			class: "sx-hidden"
		}, `Classifier of panel ${n + 1}`), this.menu, this.status), this.plot.element, t("p", {
			id: i,
			class: "sx-hidden"
		}, "Arrow keys move a cursor, Enter adds a point there. N and P go through the points; then arrow keys move the point, 1 to 9 change its class, plus and minus its weight, Delete removes it, Escape lets go."), this.readout), t("div", { class: "sx-side" }, this.about, this.controls, this.film, this.decision, this.details));
	}
	get family() {
		return this.app.families.get(this.app.store.models[this.index].family);
	}
	fillMenu() {
		let e = /* @__PURE__ */ new Map();
		for (let n of this.app.families.values()) e.has(n.group) || e.set(n.group, t("optgroup", { label: n.group })), e.get(n.group).append(t("option", { value: n.name }, n.title));
		this.menu.replaceChildren(...e.values());
	}
	rebuild() {
		let e = this.app.store.models[this.index];
		e.parameters = {
			...s(this.family),
			...e.parameters
		}, this.menu.value = e.family, this.about.textContent = this.family.about, this.controls.replaceChildren(f(this.family, e.parameters, (e, t, n) => this.request(n))), this.decision.replaceChildren(m(this.app.store.decision, this.app.store.classes, (e, t) => this.app.decide(e, t))), this.stopFilm(), this.film.replaceChildren(), this.family.film && this.film.append(t("button", {
			type: "button",
			"data-film": this.family.film,
			onclick: () => this.askFilm()
		}, this.family.film === "mistakes" ? "Show mistake after mistake" : "Show step after step"));
	}
	choose(e) {
		this.app.store.models[this.index] = {
			family: e,
			parameters: {}
		}, this.rebuild(), this.request(!1);
	}
	request(e) {
		this.draft = e, this.changes.push(performance.now()), this.pending = !0, this.stopFilm(), this.flush();
	}
	flush() {
		if (!this.pending || !this.app.connected) return;
		let e = this.sent !== this.shown, t = performance.now() - this.sentAt;
		clearTimeout(this.timer), e && t < K ? this.timer = window.setTimeout(() => this.flush(), K - t) : (this.pending = !1, this.sentAt = performance.now(), this.sentChanges = this.changes, this.changes = [], this.sent = this.app.send("fit", {
			...this.app.stateOf(this.index),
			grid: this.draft ? G : W
		}), this.status.classList.add("sx-busy"));
	}
	reset() {
		this.shown = this.sent, this.pending = !0;
	}
	receive(e) {
		if (e.id < this.shown) return;
		this.shown = e.id;
		let t = e.id === this.sent ? this.sentChanges : [];
		this.flush(), e.id === this.sent && this.status.classList.remove("sx-busy"), this.reply = e, this.clearReadout(), this.plot.reply = e, this.plot.update(this.app.scene(), this.app.theme, { reply: !0 }), requestAnimationFrame((e) => this.latencies.push(...t.map((t) => Math.max(e, performance.now()) - t))), this.drawStatus(e), this.element.dataset.shown = String(e.id), clearTimeout(this.later);
		let n = this.draft && !e.error ? this.detailed + se - performance.now() : 0;
		n > 0 ? this.later = window.setTimeout(() => this.renewDetails(), n) : this.renewDetails();
	}
	renewDetails() {
		this.detailed = performance.now(), !this.reply || this.reply.error ? this.details.replaceChildren() : this.drawDetails(this.reply);
	}
	get idle() {
		return !this.pending && this.sent === this.shown;
	}
	drawStatus(e) {
		if (e.error) {
			this.status.replaceChildren(t("span", { class: "sx-badge sx-bad" }, "no fit"), t("span", { class: "sx-sentence" }, e.error));
			return;
		}
		let { fit: n, measures: r } = e, i = `${(100 * r.accuracy).toFixed(1)} % right`, a = n.seconds < 1 ? `${(1e3 * n.seconds).toFixed(1)} ms` : `${n.seconds.toFixed(2)} s`, o = n.status && t("span", {
			class: `sx-badge ${q.has(n.status) ? "sx-good" : "sx-warn"}`,
			title: n.sentence
		}, n.status.toLowerCase().replaceAll("_", " "));
		this.status.replaceChildren(...[
			o,
			t("span", {}, i),
			t("span", { class: "sx-time" }, a)
		].filter((e) => e !== null));
	}
	drawDetails(e) {
		let { theme: n } = this.app, r = [], i = e.extras.filter((e) => e.type === "fact").map((e) => [e.name, e.value]);
		e.fit.certificate && i.unshift(["certificate", e.fit.certificate.text]), e.fit.sentence && !q.has(e.fit.status ?? "") && i.unshift(["status", `${e.fit.sentence} ${e.fit.detail}`]), e.fit.iterations && i.push(["steps", String(e.fit.iterations)]), i.length && r.push(t("dl", {}, ...i.map(([e, n]) => t("div", {}, t("dt", {}, e), t("dd", {}, n))))), r.push(H(e.measures, this.app.store.classes));
		let a = U(e.measures);
		a && r.push(z(a, n));
		for (let t of e.extras) t.type === "chart" && r.push(z(t, n)), t.type === "table" && r.push(V(t));
		this.details.replaceChildren(...r);
	}
	showProbe(e, t) {
		let { classes: n } = this.app.store, r = e.action < 0 ? "reject" : n[e.action], i = `${t[0].toPrecision(3)}, ${t[1].toPrecision(3)}: ${r}`;
		e.probabilities && (i += ` · ${Object.entries(e.probabilities).map(([e, t]) => `${n[Number(e)]} ${t.toFixed(3)}`).join(", ")}`), e.score !== null && (i += ` · score ${Number(e.score).toPrecision(3)}`), e.distance !== null && (i += ` · distance ${Math.abs(e.distance).toPrecision(3)}`), this.readout.textContent = i;
	}
	clearReadout() {
		this.readout.textContent = "\xA0";
	}
	askFilm() {
		this.app.ask("film", {
			...this.app.stateOf(this.index),
			grid: G
		}).then((e) => {
			e.error ? this.app.say(String(e.error)) : this.play(e.frames);
		});
	}
	play(e) {
		if (this.stopFilm(), !e.length) {
			this.app.say("There is no step to show.");
			return;
		}
		let n = t("p", {
			class: "sx-note",
			"aria-live": "polite"
		}), r = t("input", {
			type: "range",
			min: 0,
			max: e.length - 1,
			step: 1,
			value: "0",
			"aria-label": "Step",
			"data-film-slider": "",
			oninput: () => {
				a(), i(Number(r.value));
			}
		}), i = (t) => {
			r.value = String(t), n.textContent = e[t].caption, this.plot.frame = e[t], this.plot.schedule();
		}, a = () => {
			clearInterval(this.playing), this.playing = 0, s.textContent = "Play";
		}, o = () => {
			Number(r.value) >= e.length - 1 && i(0), s.textContent = "Pause", this.playing = window.setInterval(() => {
				let t = Number(r.value) + 1;
				t >= e.length ? a() : i(t);
			}, Math.max(60, Math.min(600, 6e3 / e.length)));
		}, s = t("button", {
			type: "button",
			onclick: () => this.playing ? a() : o()
		}, "Play");
		this.film.querySelector(".sx-player")?.remove(), this.film.append(t("div", { class: "sx-player" }, s, r, t("button", {
			type: "button",
			onclick: () => this.stopFilm()
		}, "Close"), n)), i(0), matchMedia("(prefers-reduced-motion: reduce)").matches ? a() : o();
	}
	stopFilm() {
		clearInterval(this.playing), this.playing = 0, this.plot.frame && (this.plot.frame = null, this.film.querySelector(".sx-player")?.remove(), this.plot.schedule());
	}
}, ce = (e) => ({
	x: e.x.slice(),
	y: e.y.slice(),
	label: e.label.slice(),
	weight: e.weight.slice()
}), le = 60, ue = class {
	points = {
		x: [],
		y: [],
		label: [],
		weight: []
	};
	classes = ["blue", "orange"];
	axes = ["x", "y"];
	view = {
		x: [-3, 3],
		y: [-3, 3]
	};
	truth = null;
	data = "blobs";
	models = [];
	decision = null;
	panels = 1;
	revision = 0;
	moved = null;
	past = [];
	future = [];
	get n() {
		return this.points.x.length;
	}
	remember() {
		this.past.push({
			...this.now(),
			points: ce(this.points)
		}), this.past.length > le && this.past.shift(), this.future = [];
	}
	now() {
		let { points: e, classes: t, axes: n, view: r, truth: i } = this;
		return {
			points: e,
			classes: t,
			axes: n,
			view: r,
			truth: i
		};
	}
	get canUndo() {
		return this.past.length > 0;
	}
	get canRedo() {
		return this.future.length > 0;
	}
	undo() {
		return this.travel(this.past, this.future);
	}
	redo() {
		return this.travel(this.future, this.past);
	}
	travel(e, t) {
		let n = e.pop();
		return n ? (t.push(this.now()), Object.assign(this, n), this.changed(), !0) : !1;
	}
	forget() {
		this.past = [], this.future = [];
	}
	changed() {
		this.revision++, this.moved = null;
	}
	move(e, t, n) {
		this.points.x[e] = this.rounded(t, this.view.x), this.points.y[e] = this.rounded(n, this.view.y), this.revision++, this.moved?.set(e, !0);
	}
	add(e, t, n) {
		return this.points.x.push(this.rounded(e, this.view.x)), this.points.y.push(this.rounded(t, this.view.y)), this.points.label.push(n), this.points.weight.push(1), this.changed(), this.n - 1;
	}
	remove(e) {
		let t = new Set(e), n = (e) => e.filter((e, n) => !t.has(n));
		this.points = {
			x: n(this.points.x),
			y: n(this.points.y),
			label: n(this.points.label),
			weight: n(this.points.weight)
		}, this.changed();
	}
	rounded(e, t) {
		return Number(e.toFixed(Math.min(12, Math.max(0, Math.ceil(4 - Math.log10(t[1] - t[0]))))));
	}
	shared() {
		let { points: e, classes: t, axes: n, view: r, truth: i, models: a, decision: o, panels: s, data: c } = this;
		return {
			points: e,
			classes: t,
			axes: n,
			view: r,
			truth: i,
			models: a,
			decision: o,
			panels: s,
			data: c
		};
	}
};
async function Y(e, t) {
	let n = new Blob([e]).stream().pipeThrough(t);
	return new Uint8Array(await new Response(n).arrayBuffer());
}
async function de(e) {
	let t = await Y(new TextEncoder().encode(JSON.stringify(e)), new CompressionStream("deflate-raw")), n = "";
	for (let e of t) n += String.fromCharCode(e);
	return btoa(n).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
async function fe(e) {
	let t = Uint8Array.from(atob(e.replaceAll("-", "+").replaceAll("_", "/")), (e) => e.charCodeAt(0));
	return JSON.parse(new TextDecoder().decode(await Y(t, new DecompressionStream("deflate-raw"))));
}
// src/app.ts
var pe = [
	[
		"draw",
		"Draw and drag",
		"Click to add a point, drag a point to move it"
	],
	[
		"paint",
		"Paint",
		"Drag to scatter points"
	],
	[
		"relabel",
		"Relabel",
		"Click or drag over points to give them the chosen class"
	],
	[
		"weight",
		"Weight",
		"Click points to make them count 2, 5, 10, 0 or 1 times"
	],
	[
		"erase",
		"Erase",
		"Click or drag over points to delete them"
	]
], X = [
	1,
	2,
	5,
	10,
	0
], me = 6, Z = class {
	root;
	transport;
	store = new ue();
	families = /* @__PURE__ */ new Map();
	theme;
	connected = !1;
	panels = [];
	hello = null;
	next = 1;
	sentRevision = -1;
	asked = /* @__PURE__ */ new Map();
	tool = "draw";
	label = 0;
	held = [];
	selected = -1;
	cursor = null;
	probing = 0;
	tools = t("div", {
		class: "sx-group",
		role: "radiogroup",
		"aria-label": "Tool"
	});
	swatches = t("div", {
		class: "sx-group",
		role: "radiogroup",
		"aria-label": "Class"
	});
	datasets = t("select", {
		id: o("data"),
		"data-control": "dataset",
		onchange: () => this.load(this.datasets.value)
	});
	columns = t("div", { class: "sx-columns" });
	undoButton = t("button", {
		type: "button",
		onclick: () => this.travel(this.store.undo()),
		title: "Ctrl+Z"
	}, "Undo");
	redoButton = t("button", {
		type: "button",
		onclick: () => this.travel(this.store.redo()),
		title: "Ctrl+Shift+Z"
	}, "Redo");
	note = t("p", {
		class: "sx-message",
		role: "status"
	});
	lost = t("p", {
		class: "sx-lost",
		role: "alert",
		hidden: ""
	}, "The explorer does not answer. Your points are kept here; the page goes on by itself once it is back.");
	spoken = t("p", {
		class: "sx-hidden",
		"aria-live": "polite"
	});
	stage = t("div", { class: "sx-panels" });
	dialog = t("dialog", { class: "sx-dialog" });
	constructor(e, t, n) {
		this.root = e, this.transport = t, e.classList.add("separatrix-explorer"), e.explorer = this, this.store.models = [{
			family: n,
			parameters: {}
		}, {
			family: "svm",
			parameters: {}
		}], this.panels = [new J(this, 0), new J(this, 1)], this.layout(), this.theme = h(e), matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
			this.theme = h(e), this.drawSwatches(), this.refresh({ theme: !0 });
			for (let e of this.shownPanels) e.reply && e.receive(e.reply);
		}), t.onMessage = (e) => this.receive(e), t.onState = (e) => this.connection(e);
		for (let e of this.panels) this.listen(e);
		e.addEventListener("keydown", (e) => this.shortcut(e)), t.open();
	}
	get shownPanels() {
		return this.panels.slice(0, this.store.panels);
	}
	layout() {
		for (let [e, n, r] of pe) this.tools.append(t("button", {
			type: "button",
			role: "radio",
			"aria-checked": String(e === this.tool),
			"data-tool": e,
			title: r,
			onclick: () => this.pick(e)
		}, n));
		let e = t("button", {
			type: "button",
			"aria-pressed": "false",
			"data-action": "two",
			onclick: () => this.setPanels(this.store.panels === 1 ? 2 : 1)
		}, "Two models"), n = (e, n, r) => t("button", {
			type: "button",
			"data-action": e,
			onclick: r
		}, n), r = t("select", {
			"aria-label": "Export",
			"data-action": "export",
			onchange: () => {
				this.export(r.value), r.value = "";
			}
		}, t("option", { value: "" }, "Export…"), t("option", { value: "svg" }, "Picture (SVG)"), t("option", { value: "png" }, "Picture (PNG)"), t("option", { value: "csv" }, "Points (CSV)"));
		this.root.append(t("header", { class: "sx-top" }, t("h1", {}, "separatrix ", t("span", {}, "explorer")), t("div", { class: "sx-group" }, t("label", { for: this.datasets.id }, "Data"), this.datasets, n("again", "Draw anew", () => this.again())), this.columns, t("div", { class: "sx-group sx-right" }, e, n("code", "Copy code", () => this.showCode()), n("share", "Share", () => this.share()), r)), t("div", {
			class: "sx-bar",
			role: "toolbar",
			"aria-label": "Points"
		}, this.tools, this.swatches, t("div", { class: "sx-group" }, this.undoButton, this.redoButton, n("clear", "Clear", () => this.clear())), t("div", { class: "sx-group" }, n("in", "Zoom in", () => this.zoom(.8)), n("out", "Zoom out", () => this.zoom(1.25)), n("fit", "Show all", () => this.showAll()))), this.lost, this.note, this.spoken, this.stage, this.dialog), this.drawSwatches(), this.drawPanels();
	}
	drawPanels() {
		this.stage.replaceChildren(...this.shownPanels.map((e) => e.element)), this.stage.dataset.panels = String(this.store.panels), this.root.querySelector("[data-action=two]")?.setAttribute("aria-pressed", String(this.store.panels === 2));
	}
	setPanels(e) {
		this.store.panels = e, this.drawPanels(), this.refresh({
			view: !0,
			points: !0
		}), e === 2 && (this.panels[1].rebuild(), this.panels[1].request(!1));
	}
	pick(e) {
		this.tool = e;
		for (let t of this.tools.children) t.setAttribute("aria-checked", String(t.dataset.tool === e));
	}
	drawSwatches() {
		let e = this.store.classes.map((e, r) => {
			let i = n("svg", {
				viewBox: "-7 -7 14 14",
				class: `sx-swatch sx-c${r % 6}`,
				"aria-hidden": "true"
			}, n("path", { d: v(r, 5) }));
			return t("button", {
				type: "button",
				role: "radio",
				"aria-checked": String(r === this.label),
				"data-class": r,
				title: "Double-click to rename",
				onclick: () => this.setLabel(r),
				ondblclick: () => this.rename(r)
			}, i, e.length > 18 ? `${e.slice(0, 17)}…` : e);
		});
		this.swatches.replaceChildren(...e), this.store.classes.length < me && this.swatches.append(t("button", {
			type: "button",
			"data-action": "class",
			"aria-label": "Another class",
			onclick: () => this.addClass()
		}, "+"));
	}
	setLabel(e) {
		this.label = e, this.drawSwatches();
	}
	addClass() {
		let e = [
			"blue",
			"orange",
			"green",
			"rose",
			"violet",
			"brown"
		];
		this.store.remember(), this.store.classes = [...this.store.classes, e.find((e) => !this.store.classes.includes(e)) ?? `class ${this.store.classes.length + 1}`], this.store.decision = null, this.label = this.store.classes.length - 1, this.edited(!1, !0);
	}
	rename(e) {
		let n = t("input", {
			type: "text",
			value: this.store.classes[e],
			"aria-label": "Name of the class",
			maxlength: 80
		});
		this.open("Name of the class", n, t("button", {
			type: "button",
			onclick: () => {
				this.dialog.close(), n.value.trim() && (this.store.remember(), this.store.classes = this.store.classes.map((t, r) => r === e ? n.value : t), this.edited(!1, !0));
			}
		}, "Rename"));
	}
	open(e, ...n) {
		this.dialog.replaceChildren(t("h2", {}, e), ...n, t("button", {
			type: "button",
			onclick: () => this.dialog.close()
		}, "Close")), this.dialog.open || this.dialog.showModal();
	}
	say(e) {
		this.note.textContent = e, setTimeout(() => this.note.textContent === e && (this.note.textContent = ""), 6e3);
	}
	connection(e) {
		if (this.connected = e, this.lost.hidden = e, this.asked.clear(), e) {
			if (this.sentRevision = -1, !this.hello) this.ask("hello", {}).then((e) => this.begin(e));
			else {
				for (let e of this.panels) e.reset();
				for (let e of this.shownPanels) e.flush();
			}
		}
	}
	send(e, t) {
		let n = this.next++;
		return this.transport.send({
			kind: e,
			id: n,
			...t
		}), n;
	}
	ask(e, t) {
		let n = this.send(e, t);
		return new Promise((e) => this.asked.set(n, e));
	}
	receive(e) {
		let t = Number(e.id), n = this.asked.get(t);
		n ? (this.asked.delete(t), n(e)) : e.kind === "fit" && this.panels[Number(e.panel ?? 0)].receive(e);
	}
	stateOf(e) {
		let { store: t } = this, n = { points: t.points };
		this.sentRevision >= 0 && t.moved && (n = { moved: [...t.moved.keys()].map((e) => [
			e,
			t.points.x[e],
			t.points.y[e]
		]) }), this.sentRevision = t.revision, t.moved = /* @__PURE__ */ new Map();
		let { classes: r, axes: i, view: a, truth: o, decision: s } = t;
		return {
			panel: e,
			...n,
			classes: r,
			axes: i,
			view: a,
			truth: o,
			decision: s,
			model: t.models[e]
		};
	}
	async begin(e) {
		this.hello = e;
		for (let t of e.families) this.families.set(t.name, t);
		e.table && this.datasets.append(t("option", { value: "table" }, `Your table: ${e.table.target}`)), this.datasets.append(...e.datasets.map((e) => t("option", { value: e.name }, e.title)));
		for (let e of this.panels) e.fillMenu();
		let n = this.root.isConnected && location.hash.startsWith("#s=") ? location.hash.slice(3) : "";
		if (n) try {
			this.restore(await fe(n));
			return;
		} catch {
			this.say("The address holds no points that can be read; here are others.");
		}
		this.load(e.table ? "table" : "blobs");
	}
	restore(e) {
		let { points: t, classes: n, axes: r, view: i, truth: a, models: o, decision: s, panels: c, data: l } = e, u = [
			t.x,
			t.y,
			t.label,
			t.weight
		].map((e) => e.length);
		if (new Set(u).size !== 1 || !n.length || o.some((e) => !this.families.has(e.family))) throw Error("unreadable");
		Object.assign(this.store, {
			points: t,
			classes: n,
			axes: r,
			view: i,
			truth: a,
			models: o,
			decision: s,
			data: l,
			panels: c === 2 ? 2 : 1
		}), this.datasets.value = "", this.store.changed(), this.drawPanels(), this.renewed();
	}
	seed = 0;
	again() {
		this.seed++, this.load(this.datasets.value || this.store.data);
	}
	load(e, t) {
		this.ask("dataset", {
			name: e,
			columns: t ?? null,
			seed: this.seed
		}).then((t) => {
			let n = t;
			if (n.error) return this.say(n.error);
			this.store.n && this.store.remember(), Object.assign(this.store, {
				points: n.points,
				classes: n.classes,
				axes: n.axes,
				view: n.view,
				truth: n.truth,
				data: e,
				decision: null
			}), this.store.changed(), this.datasets.value = e, this.drawColumns(e, n), n.left_out && this.say(`${n.left_out} rows of the table, drawn at random, are not shown.`), this.renewed();
		});
	}
	drawColumns(e, n) {
		if (this.columns.replaceChildren(), !n.columns || n.columns.length < 2) return;
		let r = Array.isArray(n.chosen) ? n.chosen : ["", ""], i = ["across", "upwards"].map((e, i) => t("select", {
			"aria-label": `Column ${e}`,
			"data-column": i
		}, t("option", { value: "" }, "discriminant"), ...n.columns.map((e) => {
			let n = t("option", { value: e }, e);
			return n.selected = e === r[i], n;
		})));
		for (let [t, r] of i.entries()) r.addEventListener("change", () => {
			let a = i[1 - t];
			if (!r.value) return this.load(e, null);
			a.value ||= n.columns.find((e) => e !== r.value), this.load(e, i.map((e) => e.value));
		});
		this.columns.append(...i);
	}
	renewed() {
		this.label = Math.min(this.label, this.store.classes.length - 1), this.selected = -1, this.cursor = null, this.drawSwatches();
		for (let e of this.shownPanels) e.plot.reply = null, e.rebuild();
		this.refresh({
			view: !0,
			points: !0
		});
		for (let e of this.shownPanels) e.request(!1);
	}
	scene() {
		let { points: e, view: t, axes: n } = this.store;
		return {
			points: e,
			view: t,
			axes: n,
			selected: this.selected,
			cursor: this.cursor,
			held: this.held
		};
	}
	refresh(e) {
		for (let t of this.shownPanels) t.plot.update(this.scene(), this.theme, e);
		this.undoButton.disabled = !this.store.canUndo, this.redoButton.disabled = !this.store.canRedo;
	}
	edited(e, t = !1) {
		if (t) {
			this.drawSwatches(), this.store.changed();
			for (let e of this.shownPanels) e.rebuild();
		}
		this.refresh({ points: !0 });
		for (let t of this.shownPanels) t.request(e);
	}
	decide(e, t) {
		if (this.store.decision = e, !t) for (let e of this.shownPanels) e.rebuild();
		for (let e of this.shownPanels) e.request(t);
	}
	travel(e) {
		e && (this.selected = -1, this.store.decision && this.store.decision.loss.length !== this.store.classes.length && (this.store.decision = null), this.label = Math.min(this.label, this.store.classes.length - 1), this.edited(!1, !0), this.refresh({ view: !0 }));
	}
	clear() {
		this.store.remember(), this.store.remove(this.store.points.x.map((e, t) => t)), this.store.truth = null, this.selected = -1, this.edited(!1);
	}
	zoom(e) {
		let t = ([t, n]) => {
			let r = (t + n) / 2, i = (n - t) / 2 * e;
			return [r - i, r + i];
		};
		this.store.view = {
			x: t(this.store.view.x),
			y: t(this.store.view.y)
		}, this.viewed();
	}
	showAll() {
		let e = (e) => {
			let t = Infinity, n = -Infinity;
			for (let r of e) t = Math.min(t, r), n = Math.max(n, r);
			let r = .12 * (n - t) || 1;
			return e.length ? [t - r, n + r] : [-3, 3];
		};
		this.store.view = {
			x: e(this.store.points.x),
			y: e(this.store.points.y)
		}, this.viewed();
	}
	viewed() {
		this.refresh({ view: !0 });
		for (let e of this.shownPanels) e.request(!1);
	}
	listen(e) {
		let { plot: t } = e, { canvas: n } = t, r = null;
		n.addEventListener("pointerdown", (i) => {
			i.button === 0 && (n.setPointerCapture(i.pointerId), n.focus({ preventScroll: !0 }), this.cursor = null, this.selected = -1, r = t.at(i), this.press(e, r, i.pointerType === "touch" ? 18 : 10));
		}), n.addEventListener("pointermove", (n) => {
			let i = t.at(n);
			if (r && n.buttons) {
				for (let i of n.getCoalescedEvents?.() ?? []) this.tool !== "draw" && this.drag(e, t.at(i), r, n.pointerType === "touch" ? 18 : 10);
				this.drag(e, i, r, n.pointerType === "touch" ? 18 : 10), r = i;
			} else this.probe(e, i);
		});
		let i = () => {
			r && (r = null, this.held = [], this.edited(!1));
		};
		n.addEventListener("pointerup", i), n.addEventListener("pointercancel", i), n.addEventListener("pointerleave", () => e.clearReadout()), n.addEventListener("keydown", (t) => this.key(e, t)), n.addEventListener("blur", () => {
			this.cursor = null, this.selected = -1, this.refresh({});
		});
	}
	press(e, t, n) {
		let r = e.plot.hit(...t, n);
		if (this.store.remember(), this.tool === "draw") {
			let n = r >= 0 ? r : this.store.add(...e.plot.toPlane(...t), this.label);
			this.held = [n], this.edited(!0);
		} else this.tool === "weight" ? r >= 0 && this.weigh(r, X[(X.indexOf(this.store.points.weight[r]) + 1) % X.length]) : this.drag(e, t, null, n);
	}
	drag(e, t, n, r) {
		let { store: i } = this;
		if (this.tool === "draw") {
			for (let n of this.held) i.move(n, ...e.plot.toPlane(...t));
			this.refresh({});
			for (let e of this.shownPanels) e.request(!0);
		} else if (this.tool === "paint") {
			if (n && Math.hypot(t[0] - n[0], t[1] - n[1]) < 4) return;
			let r = () => 12 * (Math.random() + Math.random() + Math.random() - 1.5);
			i.add(...e.plot.toPlane(t[0] + r(), t[1] + r()), this.label), this.edited(!0);
		} else {
			let n = e.plot.hit(...t, r);
			if (n < 0) return;
			if (this.tool === "erase" && i.remove([n]), this.tool === "relabel") {
				if (i.points.label[n] === this.label) return;
				i.points.label[n] = this.label, i.changed();
			}
			this.tool !== "weight" && this.edited(!0);
		}
	}
	weigh(e, t) {
		this.store.points.weight[e] = t, this.store.changed(), this.say(`This point counts ${t} times.`), this.edited(!1);
	}
	probe(e, t) {
		let n = performance.now();
		if (n - this.probing < 60 || !e.idle || !e.reply || e.reply.error) return;
		this.probing = n;
		let r = e.plot.toPlane(...t);
		this.ask("probe", {
			panel: e.index,
			at: r
		}).then((t) => {
			t.error || e.showProbe(t, r);
		});
	}
	shortcut(e) {
		!(e.ctrlKey || e.metaKey) || e.key.toLowerCase() !== "z" || e.target instanceof HTMLInputElement || (e.preventDefault(), this.travel(e.shiftKey ? this.store.redo() : this.store.undo()));
	}
	key(e, t) {
		let { store: n } = this, { points: r, view: i } = n, a = {
			ArrowLeft: [-1, 0],
			ArrowRight: [1, 0],
			ArrowUp: [0, 1],
			ArrowDown: [0, -1]
		}, o = t.shiftKey ? .1 : .02, s = this.selected >= 0, c = () => this.speak(`Point ${this.selected + 1} of ${n.n}, ${n.classes[r.label[this.selected]]}, at ${r.x[this.selected]}, ${r.y[this.selected]}, weight ${r.weight[this.selected]}`);
		if (!(t.ctrlKey || t.metaKey || t.altKey)) {
			if (t.key in a) {
				let [l, u] = a[t.key], d = l * o * (i.x[1] - i.x[0]), f = u * o * (i.y[1] - i.y[0]);
				if (s) n.remember(), n.move(this.selected, r.x[this.selected] + d, r.y[this.selected] + f), this.edited(!1), c();
				else {
					let [t, n] = this.cursor ?? [(i.x[0] + i.x[1]) / 2, (i.y[0] + i.y[1]) / 2];
					this.cursor = [Math.min(i.x[1], Math.max(i.x[0], t + d)), Math.min(i.y[1], Math.max(i.y[0], n + f))], this.speak(`${this.cursor[0].toPrecision(3)}, ${this.cursor[1].toPrecision(3)}`), this.refresh({}), this.probe(e, e.plot.toPixels(...this.cursor));
				}
			} else if ((t.key === "Enter" || t.key === " ") && !s) {
				n.remember();
				let e = this.cursor ?? [(i.x[0] + i.x[1]) / 2, (i.y[0] + i.y[1]) / 2];
				n.add(e[0], e[1], this.label), this.speak(`Added a point of ${n.classes[this.label]}`), this.edited(!1);
			} else if ((t.key === "n" || t.key === "p") && n.n) this.cursor = null, this.selected = (this.selected + (t.key === "n" ? 1 : n.n - +!!s) + n.n) % n.n, c(), this.refresh({});
			else if ((t.key === "Delete" || t.key === "Backspace") && s) n.remember(), n.remove([this.selected]), this.selected = Math.min(this.selected, n.n - 1), this.speak("Deleted"), this.edited(!1);
			else if (/^[1-9]$/.test(t.key) && Number(t.key) <= n.classes.length) this.setLabel(Number(t.key) - 1), s && (n.remember(), r.label[this.selected] = this.label, n.changed(), this.edited(!1), c());
			else if ((t.key === "+" || t.key === "-") && s) {
				n.remember();
				let e = Math.max(0, [
					0,
					1,
					2,
					5,
					10
				].indexOf(r.weight[this.selected]));
				this.weigh(this.selected, [
					0,
					1,
					2,
					5,
					10
				][Math.min(4, Math.max(0, e + (t.key === "+" ? 1 : -1)))]), c();
			} else if (t.key === "Escape") this.selected = -1, this.cursor = null, this.refresh({});
			else return;
			t.preventDefault();
		}
	}
	speak(e) {
		this.spoken.textContent = e;
	}
	async showCode() {
		let e = [];
		for (let t of this.shownPanels) {
			let n = await this.ask("code", {
				...this.stateOf(t.index),
				grid: 61
			});
			if (n.error) return this.say(String(n.error));
			e.push(String(n.code));
		}
		let n = e.join("\n\n# The second panel\n"), r = t("button", {
			type: "button",
			onclick: () => this.copy(n, r)
		}, "Copy");
		this.open("Python code of what is on the screen", t("pre", { tabindex: "0" }, n), r);
	}
	async copy(e, t) {
		try {
			await navigator.clipboard.writeText(e), t.textContent = "Copied";
		} catch {
			t.textContent = "Select the text to copy it";
		}
	}
	async share() {
		let e = `#s=${await de(this.store.shared())}`;
		history.replaceState(null, "", e);
		let n = t("button", {
			type: "button",
			onclick: () => this.copy(location.href, n)
		}, "Copy the address");
		this.open("Share", t("p", {}, "The address now holds all points and models. It opens on this machine while the explorer runs; elsewhere, put the part from # on behind the address of the explorer there."), t("p", { class: "sx-note" }, `${e.length} characters`), n);
	}
	async export(e) {
		if (e === "csv") return F("points.csv", new Blob([P(this.store)], { type: "text/csv" }));
		for (let t of this.shownPanels) {
			let n = te(this.store, t.reply, this.theme, t.family.title), r = `separatrix-${t.family.name}`;
			e === "svg" && F(`${r}.svg`, new Blob([n], { type: "image/svg+xml" })), e === "png" && F(`${r}.png`, await ne(n));
		}
	}
}, Q = class {
	address;
	onMessage = () => {};
	onState = () => {};
	socket = null;
	wait = 250;
	ended = !1;
	constructor(e) {
		this.address = e;
	}
	open() {
		let e = new WebSocket(this.address);
		this.socket = e, e.onopen = () => {
			this.wait = 250, this.onState(!0);
		}, e.onmessage = (e) => this.onMessage(JSON.parse(e.data)), e.onclose = () => {
			this.ended || (this.onState(!1), setTimeout(() => this.open(), this.wait), this.wait = Math.min(4e3, this.wait * 1.6));
		};
	}
	send(e) {
		this.socket?.readyState === WebSocket.OPEN && this.socket.send(JSON.stringify(e));
	}
	close() {
		this.ended = !0, this.socket?.close();
	}
}, he = class {
	model;
	onMessage = () => {};
	onState = () => {};
	heard = (e) => this.onMessage(e);
	constructor(e) {
		this.model = e;
	}
	open() {
		this.model.on("msg:custom", this.heard), this.onState(!0);
	}
	send(e) {
		this.model.send(e);
	}
	close() {
		this.model.off("msg:custom", this.heard);
	}
};
// src/main.ts
function ge({ model: e, el: t }) {
	let n = document.createElement("div");
	n.classList.add("sx-embedded"), n.style.height = `${Number(e.get("height"))}px`, t.append(n);
	let r = new he(e);
	return new Z(n, r, String(e.get("family"))), () => r.close();
}
var _e = { render: ge }, $ = document.getElementById("separatrix-explorer");
if ($) {
	let e = new URL("socket", location.href);
	e.protocol = "ws:", e.hash = "", new Z($, new Q(e.href), "logistic");
}
export { _e as default };
