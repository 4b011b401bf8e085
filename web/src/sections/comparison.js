// Predictions side by side, and what makes each differ from the first: class by class, adding up to the whole.
import { axis, bytesAxis, chart } from '../chart.js';
import { card, escape, h } from '../dom.js';
import { bytes, digits, percent, seconds, signed, words } from '../format.js';
import { colour, css, part as partColour } from '../palette.js';
import { table } from '../table.js';

const letter = (i) => String.fromCharCode(65 + i);

/** Simulated, else as recorded; of a recording that says nothing, nothing. */
const memoryOf = (s) => s.memory ?? s.memory_as_recorded ?? {};

function sides({ scenarios }) {
  const first = scenarios[0];
  const against = (value, base) => (value === base ? '' : ` (${signed(percent(value / base - 1), value - base)})`);
  const columns = [
    { title: '', text: true, value: (s) => letter(scenarios.indexOf(s)), show: (l, s) => [h('i', { class: 'dot', style: `background:${partColour(scenarios.indexOf(s))}` }), l] },
    { title: 'scenario', text: true, class: 'wide', value: (s) => s.label },
    { title: 'hardware', text: true, value: (s) => s.hardware },
    { title: 'step', value: (s) => s.step.time_s, show: (t) => seconds(t) + against(t, first.step.time_s) },
    { title: 'low to high', value: (s) => s.step.low_s, show: (t, s) => `${seconds(t)} to ${seconds(s.step.high_s)}` },
    { title: 'sequences/s', value: (s) => s.step.samples_per_s, show: (v) => digits(v) },
    { title: 'MFU', value: (s) => s.step.mfu, show: (v) => percent(v) },
    { title: 'memory', value: (s) => memoryOf(s).device_used_bytes, show: (v) => (v === undefined ? 'unknown' : bytes(v)) },
    { title: 'fits', text: true, value: (s) => (memoryOf(s).fits === undefined ? 'unknown' : memoryOf(s).fits ? 'yes' : 'no'), show: (fits) => h('span', { class: fits === 'yes' ? 'good' : 'bad' }, fits) },
  ];
  return card('Side by side', 'Changes are against A.', table(columns, scenarios, { id: 'sides' }));
}

function stacked(id, scenarios, values, show) {
  const most = Math.max(0, ...scenarios.map((s) => Object.values(values(s)).reduce((sum, v) => sum + v, 0)));
  const keys = [...new Set(scenarios.flatMap((s) => Object.keys(values(s))))].filter((key) => scenarios.some((s) => values(s)[key] > 0));
  return chart(id, () => ({
    grid: { left: 8, right: 30, top: 56, bottom: 8, containLabel: true },
    legend: { top: 0, data: keys.map(words) },
    tooltip: { trigger: 'item', formatter: (p) => `${escape(scenarios[p.dataIndex].label)}<br>${escape(p.seriesName)}: <b>${show(p.value)}</b>` },
    xAxis: show === bytes ? bytesAxis(most, { axisLabel: { hideOverlap: true } }) : axis({ type: 'value', axisLabel: { formatter: show, hideOverlap: true } }),
    yAxis: axis({ type: 'category', inverse: true, data: scenarios.map((_, i) => letter(i)), axisLabel: { fontSize: 13 } }),
    series: keys.map((key) => ({ type: 'bar', stack: 'all', name: words(key), barMaxWidth: 34, itemStyle: { color: colour(key) }, data: scenarios.map((s) => values(s)[key] ?? 0) })),
  }));
}

/** From A to another side: each bar starts where the one before ended. */
function waterfall(id, first, other, difference, index) {
  const steps = difference.classes.filter((c) => Math.abs(c.difference_s) > 0.002 * first.step.time_s);
  const rest = difference.time_s - steps.reduce((sum, c) => sum + c.difference_s, 0);
  const bars = [...steps.map((c) => ({ name: words(c.class), by: c.difference_s, why: c.reason })), ...(Math.abs(rest) > 1e-9 ? [{ name: 'the rest', by: rest, why: '' }] : [])];
  let level = first.step.time_s;
  const rows = [{ name: 'A', from: 0, to: level, why: first.label, whole: 0 }];
  for (const bar of bars) {
    rows.push({ ...bar, from: level, to: level + bar.by });
    level += bar.by;
  }
  rows.push({ name: letter(index), from: 0, to: level, why: other.label, whole: index });
  const fill = (r) => (r.whole !== undefined ? partColour(r.whole) : css(r.to < r.from ? '--good' : '--bad'));
  return chart(id, () => ({
    grid: { left: 8, right: 20, top: 24, bottom: 8, containLabel: true },
    tooltip: { trigger: 'item', formatter: ({ data }) => `<b>${escape(data.row.name)}</b> ${data.row.whole === undefined ? signed(seconds(data.row.by), data.row.by) : seconds(data.row.to)}<br><div style="max-width:420px;white-space:normal">${escape(data.row.why)}</div>` },
    xAxis: axis({ type: 'category', data: rows.map((r) => r.name), axisLabel: { interval: 0, width: 110, overflow: 'break' }, splitLine: { show: false } }),
    yAxis: axis({ type: 'value', axisLabel: { formatter: (v) => seconds(v) } }),
    series: [
      { type: 'bar', stack: 'w', silent: true, itemStyle: { color: 'transparent' }, data: rows.map((r) => Math.min(r.from, r.to)) },
      {
        type: 'bar', stack: 'w', barMaxWidth: 54,
        label: { show: true, position: 'top', color: css('--ink'), formatter: ({ data }) => (data.row.whole === undefined ? signed(seconds(data.row.by), data.row.by) : seconds(data.row.to)) },
        data: rows.map((r) => ({ value: Math.abs(r.to - r.from), row: r, itemStyle: { color: fill(r), borderRadius: 3 } })),
      },
    ],
  }));
}

function reasons(first, difference) {
  const columns = [
    { title: 'class', text: true, value: (c) => words(c.class) },
    { title: 'A', value: (c) => c.before_s, show: (t) => seconds(t) },
    { title: 'then', value: (c) => c.after_s, show: (t) => seconds(t) },
    { title: 'difference', value: (c) => c.difference_s, show: (t) => h('span', { class: t < 0 ? 'good' : t > 0 ? 'bad' : '' }, signed(seconds(t), t)) },
    { title: 'why', text: true, class: 'wide', value: (c) => c.reason },
  ];
  return table(columns, difference.classes.filter((c) => c.before_s > 0 || c.after_s > 0));
}

export function comparison(data) {
  const { scenarios, differences } = data;
  const memoryParts = (s) => ({ ...memoryOf(s).breakdown });
  const half = (section) => { section.classList.add('half'); return section; };
  return [
    h('section', {}, h('h1', {}, 'Comparison'), h('p', {}, scenarios.map((s, i) => `${letter(i)} ${s.label}`).join('; '))),
    sides(data),
    half(card('Time by class', 'Each bar adds up to its step; idle: the GPU waits.', stacked('compare-time', scenarios, (s) => s.time_by_class, (v) => seconds(v)))),
    half(card('Memory at the peak', 'Bytes by category, without the CUDA context.', stacked('compare-memory', scenarios, memoryParts, bytes))),
    ...differences.map((d, i) => card(`${letter(i + 1)} against A: ${signed(seconds(d.time_s), d.time_s)}`, `${d.label}. The differences add up to the whole${d.memory_bytes === null ? '' : `; memory ${signed(bytes(d.memory_bytes), d.memory_bytes)}`}.`,
      waterfall(`difference-${i + 1}`, scenarios[0], scenarios[i + 1], d, i + 1), reasons(scenarios[0], d))),
  ];
}
