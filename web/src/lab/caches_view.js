// What caches do: bytes at each level by class, and of one kernel the hits of each operand and what it pushes out.
import { axis, bytesAxis, chart } from '../chart.js';
import { card, escape, h, number } from '../dom.js';
import { bandwidth, bytes, count, percent, seconds, words } from '../format.js';
import { css, hue } from '../palette.js';
import { table } from '../table.js';
import { keptSliders } from './controls.js';
import { behind } from './draw.js';

const kLevels = [['loaded_bytes', 'loaded by the SMs', 'purple'], ['l2_bytes', 'asked of the L2', 'green'], ['dram_read_bytes', 'read of the DRAM', 'orange'], ['dram_write_bytes', 'written to the DRAM', 'yellow']];

/** Bytes at each level by class of kernel: [{name, operand_bytes, loaded_bytes, l2_bytes, …, time_s}]; they add up to the groups'. */
export function levelsByClass({ groups, caches }) {
  const classes = new Map();
  groups.forEach((g, i) => {
    const row = classes.get(g.class) ?? { name: g.class, time_s: 0, operand_bytes: 0, loaded_bytes: 0, l2_bytes: 0, dram_read_bytes: 0, dram_write_bytes: 0 };
    row.time_s += g.time_s;
    for (const key of Object.keys(caches)) row[key] += caches[key][i];
    classes.set(g.class, row);
  });
  return [...classes.values()].sort((a, b) => b.loaded_bytes - a.loaded_bytes);
}

function levels(p) {
  const rows = levelsByClass(p);
  const drawn = [...rows].reverse();
  const picture = chart('cache-levels', () => ({
    grid: { left: 8, right: 30, top: 34, bottom: 8, containLabel: true },
    legend: { top: 0 },
    tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: (parts) => `<b>${escape(words(parts[0].name))}</b><br>${parts.map((part) => `${escape(part.seriesName)}: ${bytes(part.value)}`).join('<br>')}` },
    xAxis: bytesAxis(Math.max(1, ...rows.flatMap((r) => kLevels.map(([key]) => r[key])))),
    yAxis: axis({ type: 'category', data: drawn.map((r) => r.name), axisLabel: { formatter: words, fontSize: 13 } }),
    series: kLevels.map(([key, name, shade]) => ({ type: 'bar', name, barMaxWidth: 14, itemStyle: { color: hue(shade) }, data: drawn.map((r) => r[key]) })),
  }));
  const shown = (key, title) => ({ title, value: (r) => r[key], show: bytes });
  const columns = [{ title: 'class', text: true, value: (r) => words(r.name) }, shown('operand_bytes', 'operands, each once'), ...kLevels.map(([key, title]) => shown(key, title)),
    { title: 'L2 hits', value: (r) => (r.l2_bytes > 0 ? Math.max(0, 1 - (r.dram_read_bytes + r.dram_write_bytes) / r.l2_bytes) : 0), show: percent }, { title: 'DRAM', value: (r) => (r.dram_read_bytes + r.dram_write_bytes) / Math.max(r.time_s, 1e-12), show: bandwidth }];
  const section = card('Bytes at each level, by class', 'The sums are over all kernels of the step. Each class has three bars: bytes that its threads load, bytes that reach the L2, and bytes that reach the DRAM.', picture, behind('cache-levels-numbers', 'Numbers', columns, () => rows));
  section.id = 'levels';
  return section;
}

const kShares = [['L1 and shared memory', 'purple', (o) => o.loaded_bytes - o.l2_bytes], ['L2', 'green', (o) => Math.max(0, o.l2_bytes - o.dram_bytes)], ['DRAM', 'orange', (o) => o.dram_bytes]];
const title = (o) => `${o.name}${o.written ? ', written' : ''}`;

function operands({ operands: all }) {
  const drawn = [...all].reverse();
  const whole = (o) => Math.max(1, kShares.reduce((sum, [, , of]) => sum + of(o), 0));
  const picture = chart('cache-hits', () => ({
    grid: { left: 8, right: 30, top: 34, bottom: 8, containLabel: true },
    legend: { top: 0 },
    tooltip: { trigger: 'axis', axisPointer: { type: 'shadow' }, formatter: (parts) => `<b>${escape(title(drawn[parts[0].dataIndex]))}</b>, ${bytes(drawn[parts[0].dataIndex].bytes)}<br>${parts.map((part) => `${escape(part.seriesName)}: ${percent(part.value)}, ${bytes(part.data.bytes)}`).join('<br>')}` },
    xAxis: axis({ type: 'value', max: 1, axisLabel: { formatter: percent } }),
    yAxis: axis({ type: 'category', data: drawn.map(title), axisLabel: { fontSize: 13 } }),
    series: kShares.map(([name, shade, of]) => ({ type: 'bar', name, stack: 'shares', barMaxWidth: 22, itemStyle: { color: hue(shade) }, data: drawn.map((o) => ({ value: of(o) / whole(o), bytes: of(o) })) })),
  }));
  const columns = [
    { title: 'operand', text: true, value: title }, { title: 'bytes', value: (o) => o.bytes, show: bytes }, { title: 'loaded', value: (o) => o.loaded_bytes, show: bytes }, { title: 'L1 hits', value: (o) => o.l1_hit_share, show: percent },
    { title: 'asked of the L2', value: (o) => o.l2_bytes, show: bytes }, { title: 'L2 hits', value: (o) => o.l2_hit_share, show: percent }, { title: 'DRAM', value: (o) => o.dram_bytes, show: bytes }, { title: 'in the L2 before', value: (o) => o.resident, show: percent },
  ];
  return [picture, behind('cache-hits-numbers', 'Numbers', columns, () => all)];
}

function evicted({ evicted: all, evicted_bytes: sum, held_before_bytes: before, held_after_bytes: after, l2_capacity_bytes: capacity }) {
  const columns = [
    { title: 'made by', text: true, value: (e) => words(e.op) }, { title: 'category', text: true, value: (e) => words(e.category) }, { title: 'block', value: (e) => e.layer, show: (v) => (v < 0 ? '–' : count(v)) },
    { title: 'tensor', value: (e) => e.bytes, show: bytes }, { title: 'pushed out', value: (e) => e.gone_bytes, show: bytes }, { title: 'used again after', value: (e) => e.kernels_to_next || Infinity, show: (v) => (Number.isFinite(v) ? `${count(v)} kernel${v === 1 ? '' : 's'}` : 'not in this step') },
  ];
  const section = card('Evicted from the L2', sum > 0 ? `The kernel evicts ${bytes(sum)} of other tensors that would have hit.` : 'The kernel evicts no tensor that would have hit.',
    h('div', { class: 'numbers' }, number('Held before', bytes(before), `of an L2 of ${bytes(capacity)}`), number('Held after', bytes(after), 'of tensors of the run that would hit'), number('Pushed out', bytes(sum), 'by this kernel')),
    all.length ? table(columns, all, { id: 'evicted', sort: 4 }) : h('p', {}, 'No tensor.'));
  section.id = 'evicted-card';
  return section;
}

/** What a simulation saw of the kernel, where the engine is `simulate`. */
function simulated(kernel) {
  const { profile } = kernel;
  if (!profile) return [];
  return [h('div', { class: 'numbers', id: 'cache-profile' },
    number('L1 hits', percent(profile.l1_hit_rate), `of ${bytes(profile.l1_read_bytes)} read again`), number('L2 hits', percent(profile.l2_hit_rate), `of ${bytes(profile.l2_read_bytes + profile.l2_write_bytes)}`), number('DRAM', bandwidth(profile.dram_bandwidth), `${percent(profile.dram_throughput)} of its peak`))];
}

export function cacheRows({ groups, caches }) {
  const keys = Object.keys(caches);
  return [['kernel', 'shape', 'class', 'count', 'time_s', ...keys], ...groups.map((g, i) => [g.name, g.shape, g.class, g.count, g.time_s, ...keys.map((key) => caches[key][i])])];
}

export function cachesView(p, lab) {
  const { groups, prediction } = p;
  const { kernel } = prediction;
  const chosen = kernel?.group ?? -1;
  const byTime = groups.map((g, i) => i).sort((a, b) => groups[b].time_s - groups[a].time_s);
  const select = h('select', { id: 'cache-kernel', onchange: ({ target }) => lab.choose(Number(target.value)) },
    byTime.map((i) => h('option', { value: i, ...(i === chosen && { selected: '' }) }, `${groups[i].name} ${groups[i].shape}`.slice(0, 90))));
  const whatIf = h('section', { class: 'card' }, h('h2', {}, 'What if'), h('p', {}, 'These sliders change the same numbers of the chip as the controls. A larger L2 keeps more, and a faster DRAM makes misses cheaper.'), keptSliders('cache-sliders', [['l2.capacity', 'L2 size'], ['dram.bandwidth', 'DRAM bandwidth']]));
  const inside = card('One kernel, operand by operand', 'Each bar splits an operand’s bytes by the level that serves them. The launch is the first of its kind in the step.',
    h('div', { class: 'row' }, h('label', { for: 'cache-kernel' }, 'Kernel ', select)),
    ...(kernel?.caches ? [h('p', { class: 'told', id: 'cache-told' }, `${seconds(kernel.time_s)}, limited by ${words(kernel.limiter)}; ${bytes(kernel.traffic.dram_read_bytes)} read of the DRAM, ${bytes(kernel.traffic.dram_write_bytes)} written.`), ...simulated(kernel), ...operands(kernel.caches)] : []));
  inside.id = 'operands-card';
  return [whatIf, inside, ...(kernel?.caches ? [evicted(kernel.caches)] : []), levels(p)];
}
