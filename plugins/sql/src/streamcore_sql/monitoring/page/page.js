"use strict";
const $ = (id) => document.getElementById(id);
const EVERY = 2000, HOUR = 3600, POINTS = 720;
let selected = null, pointsOf = new Map(), planOf = null;

function el(tag, text, cls) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (cls) made.className = cls;
  return made;
}
function svg(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function short(number) {
  for (const [size, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(number) >= size * 0.9995) {
      const scaled = number / size;
      return scaled.toFixed(Math.abs(scaled) >= 9.95 ? 0 : 1) + unit;
    }
  }
  return Number.isInteger(number) || Math.abs(number) >= 100 ? number.toFixed(0) : number.toFixed(1);
}
function span(seconds) {
  if (seconds < 10) return seconds.toFixed(1) + " s";
  if (seconds < 120) return seconds.toFixed(0) + " s";
  if (seconds < 7200) return (seconds / 60).toFixed(0) + " min";
  return seconds < 172800 ? (seconds / 3600).toFixed(0) + " h" : (seconds / 86400).toFixed(0) + " days";
}
const clock = (time) => new Date(time * 1000).toTimeString().slice(0, 5);
const rows = (rate) => rate === undefined ? "" : short(rate) + "/s";
function total(job, side, name) {
  return sum(job.metrics.tables.filter((t) => t.side === side).map((t) => t[name]));
}

function sum(numbers) {
  const known = numbers.filter((number) => number !== undefined);
  return known.length ? known.reduce((one, other) => one + other) : undefined;
}
const size = (bytes) => short(bytes) + (bytes < 999.5 ? " B" : "B");
const REJECTED = ["numRecordsSkipped", "numRecordsIgnored", "numRecordsLost"];

async function ask(path) {
  const answer = await fetch(path, {cache: "no-store"});
  if (!answer.ok) throw new Error(answer.status);
  return answer.json();
}
async function tick() {
  try {
    const state = await ask("api/state");
    $("connection").className = "";
    $("connection").textContent = "updated " + new Date().toTimeString().slice(0, 8);
    $("name").textContent = state.name;
    document.title = state.name + " \u00b7 streamcore";
    if (!state.jobs.some((job) => job.id === selected)) selected = state.jobs.length ? state.jobs[0].id : null;
    for (const id of pointsOf.keys()) if (!state.jobs.some((job) => job.id === id)) pointsOf.delete(id);
    showJobs(state.jobs);
    showTroubles(state.troubles);
    showPlugins(state.plugins);
    const job = state.jobs.find((each) => each.id === selected);
    $("job").hidden = !job;
    if (job) { await update(job.id); showJob(job); }
  } catch (error) {
    $("connection").className = "lost";
    $("connection").textContent = "the job does not answer: it has ended, or is unreachable";
  }
  setTimeout(tick, EVERY);
}
async function update(id) {
  const kept = pointsOf.get(id) || [];
  const since = kept.length ? kept[kept.length - 1][0] : 0;
  const found = await ask("api/history?job=" + encodeURIComponent(id) + "&since=" + since);
  pointsOf.set(id, kept.concat(found.points).slice(-POINTS));
  if (planOf !== id && $("plan").open) await showPlan(id);
}
async function showPlan(id) {
  $("plan").querySelector("pre").textContent = (await ask("api/plan?job=" + encodeURIComponent(id))).plan;
  planOf = id;
}
$("plan").addEventListener("toggle", () => { if ($("plan").open && selected) showPlan(selected); });

function fill(body, made) { body.replaceChildren(...made); }
function row(cells) {
  const made = el("tr");
  made.append(...cells.map(([text, cls]) => text instanceof Node ? wrap(text, cls) : el("td", text, cls)));
  return made;
}
function wrap(node, cls) { const cell = el("td", null, cls); cell.append(node); return cell; }

function showJobs(jobs) {
  const focused = document.activeElement && document.activeElement.dataset.job;
  fill($("jobs").tBodies[0], jobs.map((job) => {
    const pick = el("button", job.metrics.job);
    pick.dataset.job = job.id;
    pick.addEventListener("click", () => {
      selected = job.id; planOf = null; $("plan").open = false;
      update(job.id).then(() => { showJobs(jobs); showJob(job); });
    });
    const time = job.metrics.batchTime;
    const made = row([[pick], [job.metrics.status, "state " + job.metrics.status],
      [rows(total(job, "source", "numRecordsInPerSecond")), "n"],
      [rows(total(job, "sink", "numRecordsOutPerSecond")), "n"],
      [job.lag], [time === undefined ? "" : span(time / 1000), "n"]]);
    made.setAttribute("aria-selected", String(job.id === selected));
    return made;
  }));
  if (focused) { const again = $("jobs").querySelector(`[data-job="${CSS.escape(focused)}"]`); if (again) again.focus(); }
}
function showJob(job) {
  const m = job.metrics;
  $("job-title").textContent = m.job;
  $("verdict").textContent = m.status === "failed" ? job.error : job.verdict;
  $("verdict").className = m.status === "failed" ? "failed" : "";
  $("topics").hidden = !job.topics.length;
  fill($("topics").querySelector("tbody"), job.topics.map(([name, text]) => row([[name], [text]])));
  const tiles = [
    ["records in", total(job, "source", "numRecordsIn"), short], ["in per second", total(job, "source", "numRecordsInPerSecond"), short],
    ["bytes in per second", total(job, "source", "numBytesInPerSecond"), size],
    ["records out", total(job, "sink", "numRecordsOut"), short], ["out per second", total(job, "sink", "numRecordsOutPerSecond"), short],
    ["bytes out per second", total(job, "sink", "numBytesOutPerSecond"), size],
    ["waiting", total(job, "source", "pendingRecords"), short],
    ["age of events", worst(job, "currentEmitEventTimeLag"), (n) => span(Math.max(n, 0) / 1000)],
    ["watermark behind", m.watermarkLag, (n) => span(Math.max(n, 0) / 1000)],
    ["rejected", sum(REJECTED.map((name) => total(job, "source", name))), short], ["dead-lettered", total(job, "source", "numRecordsDeadLettered"), short],
    ["late", m.numLateRecordsDropped || undefined, short],
    ["retries", sum(["source", "sink"].map((side) => total(job, side, "numRetries"))) || undefined, short], ["state rows", m.stateRows, short],
  ];
  fill($("tiles"), tiles.filter(([, value]) => value !== undefined).map(([name, value, how]) => {
    const tile = el("div");
    tile.append(el("dt", name), el("dd", how(value)));
    return tile;
  }));
  const points = pointsOf.get(job.id) || [];
  const seconds = points.some((p) => p[3] === null && p[4] !== null);
  fill($("charts"), [
    chart("Records per second", points, [[1, "in", "in"], [2, "out", "out"]], (n) => short(n)),
    seconds ? chart("Lag in time", points, [[4, "lag", "lag"]], span) : chart("Lag in records", points, [[3, "lag", "lag"]], short),
    chart("Batch time", points, [[5, "time", "batch"]], (n) => span(n / 1000)),
  ]);
  showPhases(m);
  showTables(job);
}
function worst(job, name) {
  const known = job.metrics.tables.filter((t) => t[name] !== undefined).map((t) => t[name]);
  return known.length ? Math.max(...known) : undefined;
}
function showPhases(m) {
  const names = {addBatch: "work", commitOffsets: "commit", walCommit: "log", queryPlanning: "plan", latestOffset: "look for data", getBatch: "fetch plan"};
  const parts = Object.entries(m.phases).sort((a, b) => b[1] - a[1]).filter(([, millis]) => millis > 0);
  $("batch").textContent = m.batchId === undefined ? "" : `number ${m.batchId}, ${span(m.batchTime / 1000)}`;
  fill($("phases"), parts.map(([, millis], at) => {
    const made = el("span", null, "p" + Math.min(at, 5));
    made.style.flexGrow = millis;
    return made;
  }));
  const told = parts.map(([name, millis]) => `${names[name] || name} ${span(millis / 1000)}`);
  $("phases").setAttribute("aria-label", told.join(", "));
  fill($("phase-names"), told.map((text, at) => {
    const made = el("li");
    made.append(el("i", null, "p" + Math.min(at, 5)), text);
    return made;
  }));
}
function showTables(job) {
  const open = new Set([...document.querySelectorAll("#tables details[open]")].map((each) => each.dataset.key));
  fill($("tables"), job.tables.map((table) => {
    const made = el("article"), figures = el("table"), body = el("tbody");
    const title = el("h4", table.table + " ");
    title.append(el("span", `${table.side}, ${table.connector}`, "quiet"));
    const found = job.metrics.tables.find((each) => each.table === table.table && each.side === table.side) || {};
    for (const [name, value] of Object.entries(found)) {
      const unit = /Lag$|Time$/.test(name) ? " ms" : name === "lagSeconds" ? " s" : "";
      if (typeof value === "number") body.append(row([[name], [value.toLocaleString("en", {maximumFractionDigits: 1}) + unit, "n"]]));
    }
    figures.append(body);
    const more = el("details"), options = el("table"), list = el("tbody");
    more.dataset.key = table.side + table.table;
    more.open = open.has(more.dataset.key);
    for (const [key, value] of Object.entries(table.options)) list.append(row([[key], [value]]));
    options.append(list);
    more.append(el("summary", "Options"), options);
    made.append(title, figures, more);
    return made;
  }));
  const lags = job.metrics.tables.flatMap((t) => (t.lag || []).map((lag) => row([[t.table], [lag.topic], [lag.place],
    [lag.rows === undefined ? "" : lag.rows.toLocaleString("en"), "n"], [lag.seconds === undefined ? "" : span(lag.seconds), "n"]])));
  $("lag").hidden = !lags.length;
  fill($("lag").querySelector("tbody"), lags);
}
function showTroubles(troubles) {
  fill($("troubles"), troubles.length ? troubles.map((trouble) => {
    const made = el("li");
    made.append(el("span", [trouble.time, trouble.job, trouble.table, trouble.batch != null && trouble.batch >= 0 ? "batch " + trouble.batch : ""].filter(Boolean).join(" \u00b7 ") + " ", "quiet"),
      el("span", trouble.text, trouble.level === "error" ? "failed" : "warning"));
    return made;
  }) : [el("li", "none", "quiet")]);
}
function showPlugins(plugins) {
  const wrong = plugins.filter((each) => ["shadowed", "broken", "incompatible"].includes(each.status));
  $("clashes").textContent = wrong.length ? wrong.map((each) => `${each.kind ? each.kind + " " : ""}'${each.identifier}' of ${each.distribution} is ${each.status}: ${each.reason}`).join("; ") : "no clashes";
  $("clashes").className = wrong.length ? "warning" : "quiet";
  $("plugin-count").textContent = `${plugins.length} installed`;
  if ($("plugins").tBodies[0].rows.length !== plugins.length) {
    fill($("plugins").tBodies[0], plugins.map((each) => row([[each.kind], [each.identifier], [each.status, "state " + each.status],
      [`${each.distribution} ${each.version}`], [each.reason]])));
  }
}

function steps(top) {
  if (!(top > 0)) return [0, 1];
  const raw = top / 3, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => n >= raw);
  const found = [];
  for (let at = 0; at < top + step; at += step) found.push(at);
  return found;
}
function chart(title, points, series, how) {
  const wide = $("charts").clientWidth || 340, columns = Math.max(1, Math.min(3, Math.floor((wide + 16) / 352)));
  const W = Math.floor((wide - 16 * (columns - 1)) / columns), H = 176, left = 52, right = 8, head = 8, foot = 22;
  const end = points.length ? points[points.length - 1][0] : Date.now() / 1000;
  const start = Math.max(end - HOUR, points.length ? Math.min(points[0][0], end - 60) : end - 60);
  const top = Math.max(0, ...points.flatMap((p) => series.map(([at]) => p[at] || 0)));
  const marks = steps(top), ceiling = marks[marks.length - 1];
  const x = (time) => left + (time - start) / (end - start) * (W - left - right);
  const y = (value) => head + (1 - value / ceiling) * (H - head - foot);
  const figure = el("figure"), caption = el("figcaption"), legend = el("ul", null, "legend");
  const drawn = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img"});
  for (const mark of marks) {
    drawn.append(svg("line", {class: "grid", x1: left, x2: W - right, y1: y(mark), y2: y(mark)}),
      svg("text", {x: left - 6, y: y(mark) + 4, "text-anchor": "end"}, how(mark)));
  }
  drawn.append(svg("text", {x: left, y: H - 6}, clock(start)), svg("text", {x: W - right, y: H - 6, "text-anchor": "end"}, clock(end)));
  const said = [];
  for (const [at, cls, name] of series) {
    let path = "", pen = false;
    for (const point of points) {
      if (point[at] === null || point[0] < start) { pen = false; continue; }
      path += `${pen ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[at]).toFixed(1)}`;
      pen = true;
    }
    drawn.append(svg("path", {class: "s " + cls, d: path}));
    const last = [...points].reverse().find((point) => point[at] !== null);
    const item = el("li");
    item.append(el("i", null, cls), name + (last ? " " + how(last[at]) : ""));
    legend.append(item);
    said.push(name + (last ? " " + how(last[at]) : " unknown"));
  }
  drawn.setAttribute("aria-label", `${title}: ${said.join(", ")}`);
  const cursor = svg("line", {class: "cursor", y1: head, y2: H - foot, visibility: "hidden"});
  drawn.append(cursor);
  drawn.addEventListener("pointermove", (event) => {
    const box = drawn.getBoundingClientRect();
    const time = start + ((event.clientX - box.left) / box.width * W - left) / (W - left - right) * (end - start);
    const near = points.reduce((best, point) => !best || Math.abs(point[0] - time) < Math.abs(best[0] - time) ? point : best, null);
    if (!near) return;
    for (const [name, value] of Object.entries({x1: x(near[0]), x2: x(near[0]), visibility: "visible"})) cursor.setAttribute(name, value);
    [...legend.children].forEach((item, n) => {
      const value = near[series[n][0]];
      item.lastChild.textContent = `${series[n][2]} ${value === null ? "unknown" : how(value)} at ${clock(near[0])}`;
    });
  });
  caption.append(el("span", title), legend);
  figure.append(caption, drawn);
  return figure;
}
tick();
