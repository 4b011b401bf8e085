// A sweep over two axes as a heat map: a colour a point, the other axes held at one of their values.
import { axis, chart, draw } from '../chart.js';
import { behind } from '../behind.js';
import { card, escape, h } from '../dom.js';
import { count } from '../format.js';
import { css } from '../palette.js';
import { answering, changing, choice } from './sweep_metrics.js';

const kMostLabels = 120; // cells that are written into
const kLeastWidth = 52; // pixels of a cell that is written into

/** Colours of small to large, readable beside the text of both themes. */
function ramp() {
  return document.documentElement.dataset.theme === 'dark' ? ['#16324a', '#1f6a8c', '#3aa39a', '#b6d66a', '#fdf3a1'] : ['#fff7c9', '#bfe0a0', '#54b5ab', '#2a7bab', '#1d3f77'];
}

/** Dark or light text, whichever is read on a colour of the ramp. */
const inkOn = (share) => ((document.documentElement.dataset.theme === 'dark') === share < 0.5 ? '#ffffff' : '#10202f');

/** The points with the held values, by their place on both axes. */
export function cellsOf(points, x, y, held) {
  return points.filter((p) => Object.entries(held).every(([name, value]) => String(p.at[name]) === value)).map((p) => ({ p, i: x.values.findIndex((v) => String(v) === String(p.at[x.name])), j: y.values.findIndex((v) => String(v) === String(p.at[y.name])) }));
}

export function heatMap(sweep, points, metrics) {
  const axes = changing(sweep);
  if (axes.length < 2 || !points.length) return [];
  const state = { x: axes[0].name, y: axes[1].name, metric: metrics[0].key, held: {} };
  const axisOf = (name) => axes.find((a) => a.name === name);
  const others = () => axes.filter((a) => a.name !== state.x && a.name !== state.y);
  const tools = h('div', { class: 'tools' });
  const told = h('p', { class: 'notes' });
  const held = () => Object.fromEntries(others().map((a) => [a.name, state.held[a.name] ?? String(a.values[0])]));
  const cells = () => cellsOf(points, axisOf(state.x), axisOf(state.y), held());
  const metric = () => metrics.find((m) => m.key === state.metric);
  const best = answering(sweep);
  const make = () => {
    const m = metric();
    const shown = cells().filter(({ p }) => p[m.key] > 0);
    const values = shown.map(({ p }) => p[m.key]);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const spread = high > low ? high - low : 1;
    const wide = (document.getElementById('heat-map')?.clientWidth ?? 900) - 110;
    const written = shown.length <= kMostLabels && wide / axisOf(state.x).values.length >= kLeastWidth;
    const category = (a) => ({ type: 'category', data: a.values.map(String), name: a.name, nameLocation: 'middle', splitArea: { show: false } });
    return {
      grid: { left: 30, right: 20, top: 16, bottom: 96, containLabel: true },
      tooltip: { trigger: 'item', formatter: ({ data: { p } }) => Object.entries(p.at).map(([key, value]) => `${escape(key)} = ${escape(value)}`).join('<br>') + `<br>${m.name}: <b>${m.show(p[m.key])}</b>${p.fits ? '' : '<br>does not fit'}` },
      xAxis: axis({ ...category(axisOf(state.x)), nameGap: 30, axisLabel: { hideOverlap: true } }),
      yAxis: axis({ ...category(axisOf(state.y)), nameGap: 8, nameLocation: 'end', nameTextStyle: { align: 'left', color: css('--soft') } }),
      visualMap: { type: 'continuous', min: low, max: high > low ? high : low + 1e-9, calculable: true, orient: 'horizontal', left: 'center', bottom: 4, itemWidth: 14, itemHeight: 160, inRange: { color: ramp() }, textStyle: { color: css('--ink') }, formatter: (v) => m.show(v) },
      series: [{
        type: 'heatmap', name: m.name, emphasis: { itemStyle: { borderColor: css('--ink'), borderWidth: 2 } },
        data: shown.map(({ p, i, j }) => ({
          value: [i, j, p[m.key]], p, itemStyle: { opacity: p.fits ? 1 : 0.35, borderColor: best.has(p.point) ? css('--accent') : css('--card'), borderWidth: best.has(p.point) ? 3 : 1 },
          label: { show: written, color: p.fits ? inkOn((p[m.key] - low) / spread) : css('--ink'), fontSize: 11, formatter: m.show(p[m.key]) },
        })),
      }],
    };
  };
  function again() {
    const some = cells();
    const missing = axisOf(state.x).values.length * axisOf(state.y).values.length - some.length;
    told.textContent = missing > 0 ? `${count(missing)} combinations were not drawn or cannot run.` : '';
    const named = axes.map((a) => [a.name, a.name]);
    const swap = (mine, other) => (value) => {
      if (state[other] === value) state[other] = state[mine];
      state[mine] = value;
      show();
    };
    tools.replaceChildren(
      choice('colour shows', metrics.map((m) => [m.key, m.name]), state.metric, (value) => { state.metric = value; show(); }),
      choice('columns', named, state.x, swap('x', 'y')), choice('rows', named, state.y, swap('y', 'x')),
      ...others().map((a) => choice(a.name, a.values.map((v) => [String(v), String(v)]), held()[a.name], (value) => { state.held[a.name] = value; show(); })),
    );
  }
  const numbers = h('div', {});
  function show() {
    const from = tools.contains(document.activeElement) ? document.activeElement.getAttribute('aria-label') : null;
    again();
    if (from) tools.querySelector(`[aria-label="${CSS.escape(from)}"]`)?.focus();
    const m = metric();
    const y = axisOf(state.y);
    const x = axisOf(state.x);
    const at = new Map(cells().map(({ p, i, j }) => [`${i} ${j}`, p]));
    numbers.replaceChildren(behind('heat-numbers', 'Numbers', [
      { title: y.name, text: true, value: (j) => String(y.values[j]) },
      ...x.values.map((value, i) => ({ title: `${x.name} ${value}`, value: (j) => at.get(`${i} ${j}`)?.[m.key] ?? NaN, show: (v) => (v > 0 ? m.show(v) : '–') })),
    ], () => y.values.map((_, j) => j)));
    draw();
  }
  again();
  const place = chart('heat-map', make, 'tall');
  const section = card('Heat map', 'Each cell is a point of the sweep. Pale cells do not fit; the framed cell answers the goal. The handles of the scale hide cells outside their range.', tools, place, told, numbers);
  section.id = 'heat';
  queueMicrotask(() => section.isConnected && show());
  return [section];
}
