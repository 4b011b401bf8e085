// What can be seen of an answer: each view names the pieces it needs of the server and draws them.
import { card, glance, h, number } from '../dom.js';
import { bandwidth, bytes, count, digits, limitName, percent, rate, seconds, signed, words } from '../format.js';
import { advice } from '../sections/advice.js';
import { breakdown } from '../sections/breakdown.js';
import { comparison } from '../sections/comparison.js';
import { flame } from '../sections/flame.js';
import { host } from '../sections/host.js';
import { lanes } from '../sections/lanes.js';
import { kernels } from '../sections/kernels.js';
import { memory } from '../sections/memory.js';
import { parallel } from '../sections/parallel.js';
import { levelOf, roofline } from '../sections/roofline.js';
import { summary } from '../sections/summary.js';
import { timeline } from '../sections/timeline.js';
import { table } from '../table.js';
import { cacheRows, cachesView } from './caches_view.js';
import { asked, behind } from './draw.js';
import { kernelDetail } from './kernel.js';
import { ladder } from './ladder.js';
import { blockRows, memoryBlocks, shortage } from './memory_blocks.js';
import { powerRows, powerView } from './power_view.js';

/** Long keys of the answer, which a view that draws nothing of them does without. */
const kLong = 'kernels,modules';

const share = (rows, total) => [
  { title: 'what', text: true, value: (r) => words(r[0]) },
  { title: 'time', value: (r) => r[1], show: seconds },
  { title: 'of the step', value: (r) => r[1] / total, show: percent },
];

/** Puts more into a card. */
function under(section, ...more) {
  section.append(...more.filter(Boolean));
  return section;
}

function breakdownWithNumbers(p) {
  const [left, right] = breakdown(p);
  const { time_by_class: classes, limited_by: limits, step } = p.prediction;
  const listed = (values) => () => Object.entries(values).filter(([, s]) => s > 0);
  return [under(left, behind('classes-numbers', 'Numbers', share(null, step.time_s), listed(classes))), under(right, behind('limits-numbers', 'Numbers', share(null, step.time_s), listed(limits)))];
}

/** What became of a pinned answer, class by class; the differences add up to the step's. */
export function against(prediction, pinned) {
  if (!pinned) return [];
  const before = pinned.step.time_s;
  const difference = prediction.step.time_s - before;
  const classes = Object.keys(prediction.time_by_class).map((key) => [key, prediction.time_by_class[key] - (pinned.time_by_class[key] ?? 0)]).filter(([, d]) => Math.abs(d) > 1e-3 * before).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const colour = (d) => (d < 0 ? 'good' : d > 0 ? 'bad' : '');
  const memoryBefore = pinned.memory?.device_used_bytes;
  const memoryNow = prediction.memory?.device_used_bytes;
  const parts = classes.map(([key, d]) => h('span', { class: colour(d) }, `${words(key)} ${signed(seconds(d), d)}`));
  return [h('section', { class: 'card', id: 'against' }, h('h2', {}, 'Against the pinned answer (A)'), h('p', {}, 'The compare view says why.'),
    h('div', { class: 'numbers' },
      number('Step', h('span', { class: colour(difference) }, `${signed(seconds(difference), difference)} (${signed(percent(difference / before), difference)})`), `A: ${seconds(before)}`),
      memoryBefore && memoryNow ? number('Memory', signed(bytes(memoryNow - memoryBefore), memoryNow - memoryBefore), `A: ${bytes(memoryBefore)}`) : null,
      number('Limited by', mostOf(prediction.limited_by), `A: ${mostOf(pinned.limited_by)}`)),
    parts.length ? h('p', { class: 'notes' }, parts.flatMap((part, i) => (i ? [', ', part] : [part]))) : null)];
}

export function mostOf(values) {
  const [key, value] = Object.entries(values).sort((a, b) => b[1] - a[1])[0];
  const total = Object.values(values).reduce((sum, v) => sum + v, 0);
  return `${limitName(key)} (${percent(value / total)})`;
}

function memoryNumbers(p) {
  const { memory: run, categories } = p;
  const columns = [
    { title: 'at', value: (i) => run.at_us[i] * 1e-6, show: seconds }, { title: 'reserved', value: (i) => run.reserved[i], show: bytes },
    ...categories.map((name, c) => ({ title: words(name), value: (i) => run.bytes[c][i], show: bytes })),
  ];
  return behind('memory-numbers', 'Numbers', columns, () => run.at_us.map((_, i) => i).filter((i) => i % Math.ceil(run.at_us.length / 200) === 0));
}

function rooflineNumbers({ groups }) {
  const level = levelOf({ groups });
  const columns = [
    { title: 'kernel', text: true, class: 'name', value: (g) => g.name }, { title: 'shape', text: true, class: 'name', value: (g) => g.shape },
    { title: `FLOP/byte of ${level.name}`, value: (g) => g.flops / level.bytes(g), show: (v) => digits(v) }, { title: 'FLOP/s', value: (g) => (g.flops * g.count) / g.time_s, show: rate }, { title: 'time', value: (g) => g.time_s, show: seconds },
  ];
  return behind('roofline-numbers', 'Numbers', columns, () => groups.filter((g) => g.flops > 0 && level.bytes(g) > 0));
}

/** The roofline beside the breakdown; of a step that does not run beside the ways that do, both in sight. */
function overviewPictures(p, lab) {
  const line = under(roofline(p, lab.again), rooflineNumbers(p));
  const ways = ladder(p, lab, kLong);
  if (!ways.length) return glance(line, breakdownWithNumbers(p));
  const halves = [...ways, line];
  for (const half of halves) half.classList.add('half');
  return [...halves, ...breakdownWithNumbers(p)];
}

/** The largest batch that fits, when it is asked for. */
function largestBatch(lab) {
  const told = h('p', { role: 'status', id: 'fit-told' }, lab.fitted ?? '');
  const ask = async () => {
    told.textContent = 'Searching …';
    try {
      const found = await lab.fit();
      lab.fitted = !found.fits ? 'Not even one sequence fits.'
        : `${count(found.micro_batch)} sequences${found.gradient_accumulation > 1 ? `, accumulated ${count(found.gradient_accumulation)} times` : ''}: ${bytes(found.memory.device_used_bytes)}, ${seconds(found.step.time_s)} per step. Even at the upper end of the memory range, ${count(found.sure_micro_batch)} fit.`;
    } catch (error) {
      lab.fitted = error.message;
    }
    told.textContent = lab.fitted;
  };
  return card('The largest batch that fits', 'The search predicts batch after batch until memory runs out.', h('button', { type: 'button', id: 'fit', onclick: ask }, 'Search'), told);
}

function holders({ memory_report: report }) {
  if (!report) return [];
  const columns = [
    { title: 'made by', text: true, value: (r) => words(r.op) }, { title: 'category', text: true, value: (r) => words(r.category) }, { title: 'phase', text: true, value: (r) => r.phase },
    { title: 'tensors', value: (r) => r.tensors, show: count }, { title: 'bytes', value: (r) => r.bytes, show: bytes },
  ];
  return [card('Tensors at the peak', 'Bytes by the operation that allocated them.', table(columns, report.by_op, { id: 'holders', sort: 4 }))];
}

function timelineNumbers({ groups, spans }) {
  const columns = [
    { title: 'starts', value: (i) => spans.start_us[i] * 1e-6, show: seconds }, { title: 'takes', value: (i) => spans.duration_us[i] * 1e-6, show: seconds },
    { title: 'kernel', text: true, class: 'name', value: (i) => groups[spans.group[i]].name }, { title: 'phase', text: true, value: (i) => spans.phase_names[spans.phase[i]] },
  ];
  return behind('timeline-numbers', 'The first 500 kernels', columns, () => spans.start_us.slice(0, 500).map((_, i) => i));
}

function sensitivity({ sensitivity: s, step }, lab) {
  if (!s) return [];
  const columns = [
    { title: '10 % more of', text: true, value: ([key]) => (key.includes('.') ? key : words(key)) },
    { title: 'saves', value: ([, v]) => v.time_saved_s, show: (t) => h('span', { class: t > 0 ? 'good' : t < 0 ? 'bad' : '' }, seconds(t)) },
    { title: 'of the step', value: ([, v]) => v.time_saved_s / step.time_s, show: percent },
  ];
  const { keys: _, ...resources } = s; // of each number of the chip: asked for when they are looked at, they take many predictions
  return [card('What a faster chip would save', 'Each row is a prediction with a tenth more of one resource.', table(columns, Object.entries(resources), { id: 'sensitivity', sort: 1 }),
    behind('sensitivity-keys', 'Each number of the hardware file', columns, asked(async () => Object.entries((await lab.more({ sensitivity: 1, leave_out: kLong })).sensitivity.keys))))];
}

function simulated(p) {
  const seen = p.prediction.kernels.filter((k) => k.profile);
  if (!seen.length) return [];
  const columns = [
    { title: 'kernel', text: true, class: 'name', value: (k) => k.name }, { title: 'occupancy', value: (k) => k.profile.achieved_occupancy, show: percent }, { title: 'waves', value: (k) => k.profile.waves_per_sm, show: (v) => digits(v) },
    { title: 'L2 hits', value: (k) => k.profile.l2_hit_rate, show: percent }, { title: 'DRAM', value: (k) => k.profile.dram_bandwidth, show: bandwidth }, { title: 'waits for memory', value: (k) => k.profile.stalls.long_scoreboard, show: percent },
  ];
  return [card('Simulated', 'Counters of the simulated thread blocks.', table(columns, seen, { id: 'simulated' }))];
}

/** id, title, and of a view of the answer: what to ask for (see /api/predict) and how to draw `p` with `lab`; whether it shows
 *  a chosen kernel, and which one where none is; what rows it can save. */
export const kGroups = ['Answer', 'Explore', 'Learn'];
export const kViews = [
  { id: 'overview', group: 'Answer', title: 'Overview', ask: { show: 'groups', leave_out: kLong }, draw: (p, lab) => [summary(p), ...against(p.prediction, lab.pinned), ...overviewPictures(p, lab), ...parallel(p)] },
  { id: 'timeline', group: 'Answer', title: 'Timeline', ask: { show: 'groups,spans', leave_out: 'kernels' }, draw: (p) => [under(timeline(p), timelineNumbers(p)), ...lanes(p), ...flame(p), host(p), ...parallel(p)] },
  { id: 'memory', group: 'Answer', title: 'Memory', ask: { show: 'memory,blocks', memory_report: 1, leave_out: kLong }, rows: (p) => (p.blocks ? [['blocks', () => blockRows(p.blocks, p.categories)]] : []),
    draw: (p, lab) => [...shortage({ memory: p.prediction.memory, blocks: p.blocks }), under(memory(p), p.memory.at_us.length ? memoryNumbers(p) : null), ...memoryBlocks(p), largestBatch(lab), ...holders(p.prediction)] },
  {
    id: 'kernels', group: 'Answer', title: 'Kernels', ask: { show: 'groups', leave_out: 'modules' }, kernel: 'chosen',
    draw: (p, lab) => [kernels(p, lab.pick), ...simulated(p), ...(p.prediction.kernel ? kernelDetail(p.prediction.kernel) : [card('A kernel from the inside', 'Choose a kernel above to see its tiles, its blocks on the SMs, its occupancy, its traffic and its equation.')])],
  },
  { id: 'caches', group: 'Answer', title: 'Caches', ask: { show: 'groups,caches', leave_out: kLong }, kernel: 'longest', rows: (p) => [['caches', () => cacheRows(p)]], draw: cachesView },
  { id: 'power', group: 'Answer', title: 'Power', ask: { show: 'groups,spans,power', leave_out: kLong }, rows: (p) => [['power', () => powerRows(p)]], draw: (p) => { const [curve, energy] = powerView(p); return [curve, timeline(p, false), energy].filter(Boolean); } },
  { id: 'advice', group: 'Explore', title: 'Advice', ask: { advice: 1, sensitivity: 1, leave_out: `${kLong},sensitivity_keys` }, draw: (p, lab) => [...advice(p), ...sensitivity(p.prediction, lab)] },
  { id: 'compare', group: 'Explore', title: 'Compare', compare: true, draw: (data) => comparison(data) },
  { id: 'sweep', group: 'Explore', title: 'Sweep', own: true },
  { id: 'scenario', group: 'Explore', title: 'Scenario', own: true },
  { id: 'exercises', group: 'Learn', title: 'Exercises', own: true },
  { id: 'gemm', group: 'Learn', title: 'Playground', own: true },
  { id: 'teacher', group: 'Learn', title: 'For teachers', own: true },
  { id: 'calibration', group: 'Learn', title: 'Calibration', own: true },
];
