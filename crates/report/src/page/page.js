"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const [HEIGHT, NUMBER, DOT, CHAR] = [24, 52, 10, 7.9];
  const { rows, threads, edges } = data;

  at("headline").textContent = data.headline;
  at("where").textContent = [data.place && "at " + data.place, data.program].filter(Boolean).join(" · ");
  at("conclusion").textContent = data.conclusion;
  at("why").hidden = !data.conclusion;
  at("output").textContent = data.output;
  at("printed").hidden = !data.output;

  // A lane is as wide as what is written in it, within limits.
  const LONGEST = 44;
  const short = (text) => (text.length > LONGEST ? text.slice(0, LONGEST - 1) + "…" : text);
  const widths = threads.map((name, lane) => {
    const texts = rows.filter((r) => r.thread === lane).map((r) => short(r.text).length);
    return Math.max(name.length + 2, 8, ...texts) * CHAR + DOT * 3;
  });
  const starts = [];
  const total = widths.reduce((sum, width) => (starts.push(sum), sum + width), NUMBER);
  const x = (lane) => starts[lane] + DOT;
  const y = (row) => row * HEIGHT + HEIGHT / 2;

  const svg = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  threads.forEach((name, lane) => {
    const label = document.createElement("span");
    label.textContent = name;
    label.title = name;
    label.style.left = starts[lane] + "px";
    label.style.width = widths[lane] + "px";
    at("lanes").append(label);
  });
  at("lanes").style.minWidth = total + "px";

  const picture = svg("svg", { width: total, height: rows.length * HEIGHT + 8, role: "img" });
  const defs = svg("defs", {});
  const arrow = svg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto", markerUnits: "userSpaceOnUse" });
  arrow.append(svg("path", { d: "M0,0 L8,4 L0,8 z" }));
  defs.append(arrow);
  picture.append(defs);
  const groups = rows.map((row, i) => {
    const group = svg("g", { class: [row.error && "wrong", row.step === null && !row.error && "inside"].filter(Boolean).join(" ") });
    group.append(svg("rect", { class: "band", x: 0, y: i * HEIGHT, width: total, height: HEIGHT }));
    if (row.step !== null) group.append(svg("text", { class: "number", x: NUMBER - 12, y: y(i) + 4, "text-anchor": "end" }, row.step));
    group.append(svg("circle", { class: "dot", cx: x(row.thread), cy: y(i), r: row.error ? 6 : 4 }));
    const words = svg("text", { x: x(row.thread) + DOT, y: y(i) + 4 }, short(row.text));
    words.append(svg("title", {}, row.text));
    group.append(words);
    group.addEventListener("click", () => choose(i));
    picture.append(group);
    return group;
  });
  threads.forEach((_, lane) => {
    const mine = rows.map((r, i) => [r, i]).filter(([r]) => r.thread === lane).map(([, i]) => i);
    if (mine.length < 2) return;
    picture.insertBefore(svg("line", { class: "lane", x1: x(lane), x2: x(lane), y1: y(mine[0]), y2: y(mine[mine.length - 1]), "stroke-width": 2 }), groups[0]);
  });
  const arrows = edges.map(([from, to, kind]) => {
    const [x1, y1, x2, y2] = [x(rows[from].thread), y(from), x(rows[to].thread), y(to)];
    const side = Math.sign(x2 - x1) * 5;
    const bend = (y2 - y1) / 2;
    const path = svg("path", { class: "edge " + kind, "marker-end": "url(#tip)", d: `M${x1 + side},${y1} C${x1 + side * 3},${y1 + bend} ${x2 - side * 3},${y2 - bend} ${x2 - side},${y2}` });
    path.append(svg("title", {}, kind));
    picture.insertBefore(path, groups[0]);
    return { from, to, path };
  });
  at("canvas").append(picture);

  let chosen = -1;
  let shownFile = null;

  function showSource(row) {
    const lines = (row.file && data.source[row.file]) || [];
    if (shownFile !== row.file) {
      shownFile = row.file;
      let last = 0;
      at("source").replaceChildren(...lines.flatMap(([number, text]) => {
        const line = document.createElement("div");
        line.dataset.line = number;
        const label = document.createElement("i");
        label.textContent = number;
        line.append(label, text);
        const gap = document.createElement("div");
        gap.textContent = "  ⋮";
        const all = last && number !== last + 1 ? [gap, line] : [line];
        last = number;
        return all;
      }));
    }
    for (const old of at("source").querySelectorAll(".here")) old.classList.remove("here");
    const line = at("source").querySelector(`[data-line="${row.line}"]`);
    if (line) {
      line.classList.add("here");
      const box = at("beside");
      box.scrollTop = line.offsetTop - box.offsetTop - box.clientHeight / 2;
    }
  }

  function choose(index) {
    if (!rows.length) return;
    index = Math.max(0, Math.min(rows.length - 1, index));
    if (chosen >= 0) groups[chosen].classList.remove("chosen");
    chosen = index;
    const row = rows[index];
    groups[index].classList.add("chosen");
    arrows.forEach(({ from, to, path }) => path.classList.toggle("lit", from === index || to === index));
    const place = row.file ? ` — ${row.file}:${row.line}${row.function ? " in " + row.function : ""}` : "";
    const number = row.step === null ? "" : `step ${row.step}, `;
    at("now").textContent = `${number}${threads[row.thread]}: ${row.text}${place}`;
    showSource(row);
    const box = at("diagram");
    const [top, bottom] = [index * HEIGHT, (index + 1) * HEIGHT + 28];
    if (top < box.scrollTop) box.scrollTop = top;
    if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    const left = starts[row.thread] - NUMBER;
    if (left < box.scrollLeft || starts[row.thread] + widths[row.thread] > box.scrollLeft + box.clientWidth) box.scrollLeft = left;
  }

  const along = (step) => {
    for (let i = chosen + step; i >= 0 && i < rows.length; i += step) {
      if (rows[i].thread === rows[chosen].thread) return i;
    }
    return chosen;
  };
  const error = () => {
    const first = rows.findIndex((r) => r.error);
    return first < 0 ? rows.length - 1 : first;
  };
  const keys = {
    ArrowDown: () => chosen + 1, j: () => chosen + 1, " ": () => chosen + 1,
    ArrowUp: () => chosen - 1, k: () => chosen - 1,
    PageDown: () => chosen + 20, PageUp: () => chosen - 20,
    Home: () => 0, End: () => rows.length - 1, e: error,
    n: () => along(1), p: () => along(-1),
  };
  document.addEventListener("keydown", (event) => {
    const move = keys[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("summary")) return;
    event.preventDefault();
    choose(move());
  });
  choose(error());
})();
