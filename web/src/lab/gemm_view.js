// A playground for one GEMM: its waves, its tail and its place under the roof on the chip of the scenario, whose sliders apply.
import { axis, chart, settle } from '../chart.js';
import { card, escape, h } from '../dom.js';
import { count, digits, limitName, percent, rate, seconds } from '../format.js';
import { css, hue } from '../palette.js';
import { kernels } from './ask.js';
import { gpuOf } from './controls.js';
import { mistakeIn, note } from './field.js';
import { changes, current, look } from './state.js';

const kSizes = ['m', 'n', 'k'];
const kTypes = ['bf16', 'fp16', 'tf32', 'fp32'];
const kFirst = { m: 2048, n: 3072, k: 4096, type: 'bf16', along: 'm' };
const kMostSize = 65536;
const kPoints = 64; // of the staircase

/** The GEMM that a state looks at. */
export function gemmOf({ look: seen = {} }) {
  const size = (key) => (mistakeIn(String(seen[`gemm_${key}`] ?? ''), 1, kMostSize) === null ? seen[`gemm_${key}`] : kFirst[key]);
  const one = (key, all) => (all.includes(seen[`gemm_${key}`]) ? seen[`gemm_${key}`] : kFirst[key]);
  return { m: size('m'), n: size('n'), k: size('k'), type: one('type', kTypes), along: one('along', kSizes) };
}

/** Sizes of the staircase: up to twice the size at hand, which is one of them. */
export function stairsOf(size) {
  const step = Math.max(1, Math.round(size / (kPoints / 2)));
  return Array.from({ length: kPoints }, (_, i) => size + (i + 1 - kPoints / 2) * step).filter((value) => value > 0 && value <= kMostSize);
}

const caseOf = ({ m, n, k, type }) => JSON.stringify({ op: 'mm', dtype: type, params: { m, n, k, layout: 'nt' } });

/** Share of the block slots that work in the last wave. */
export const lastWave = (waves) => (waves > 0 ? waves - Math.ceil(waves) + 1 : 0);

const longestOf = (p) => p.kernels.reduce((most, one) => (one.time_us > most.time_us ? one : most));
const bytesOf = (p) => p.dram_read_bytes + p.dram_write_bytes;

function answer(p) {
  const cell = (label, value, more) => h('div', {}, h('span', {}, label), h('b', {}, value), h('small', {}, more));
  const longest = longestOf(p);
  const blocks = longest.grid.reduce((all, size) => all * size, 1);
  return [
    h('div', { class: 'verdict', id: 'gemm-answer' },
      cell('Time', seconds(p.time_us * 1e-6), `${seconds(p.low_us * 1e-6)} to ${seconds(p.high_us * 1e-6)}`),
      cell('Rate', rate((p.flops / p.time_us) * 1e6), `${digits(p.flops / bytesOf(p))} FLOP per byte of DRAM`),
      cell('Waves', digits(p.waves), `in the last, ${percent(lastWave(p.waves))} of the block slots work`),
      cell('Limited by', limitName(p.limiter), `occupancy ${percent(p.occupancy)}, L2 hits ${percent(p.l2_hit_rate)}`)),
    h('p', { id: 'gemm-kernels' }, `Kernels: ${p.kernels.map((one) => one.name).join(', then ')}. ${longest.name} has ${count(blocks)} blocks of ${count(longest.block)} threads, with ${count(longest.registers)} registers per thread.`),
  ];
}

/** Time by one size, and what it would be at the best rate of all points. */
function staircase(gemm, points) {
  const best = Math.min(...points.map(({ size, p }) => p.time_us / size));
  const told = ({ size, p }) => `<b>${gemm.along} ${count(size)}</b><br>${seconds(p.time_us * 1e-6)}, ${digits(p.waves)} waves<br>${escape(longestOf(p).name)}`;
  return () => ({
    grid: { left: 14, right: 24, top: 40, bottom: 34, containLabel: true },
    legend: { top: 0, data: ['predicted', 'at the best rate'] },
    tooltip: { trigger: 'item', formatter: ({ dataIndex }) => told(points[dataIndex]) },
    xAxis: axis({ type: 'value', min: points[0].size, max: points.at(-1).size, name: gemm.along, nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: (v) => count(v) } }),
    yAxis: axis({ type: 'value', min: 0, axisLabel: { formatter: (v) => seconds(v * 1e-6) } }),
    series: [
      { type: 'line', name: 'predicted', symbolSize: 6, itemStyle: { color: hue('blue') }, lineStyle: { color: hue('blue'), width: 1.5 }, data: points.map(({ size, p }) => [size, p.time_us]),
        markLine: { silent: true, symbol: 'none', label: { show: false }, lineStyle: { color: css('--soft') }, data: [{ xAxis: gemm[gemm.along] }] } },
      { type: 'line', name: 'at the best rate', symbol: 'none', itemStyle: { color: hue('grey') }, lineStyle: { color: hue('grey'), type: 'dashed', width: 1.5 }, data: points.map(({ size }) => [size, size * best]) },
    ],
  });
}

/** `drawn()` draws the charts that stand in the page. */
export function gemmView(drawn) {
  const notes = {};
  const told = h('div', { role: 'status' });
  const place = h('div', { class: 'contents' });
  let asked = 0; // questions so far: the last one counts
  const size = (key) => {
    const input = h('input', { id: `gemm-${key}`, inputmode: 'numeric', autocomplete: 'off', oninput: () => { const mistake = mistakeIn(input.value, 1, kMostSize); notes[key].mark(mistake); if (mistake === null) set(key, Number(input.value)); else grey(true); } });
    notes[key] = { input, ...note(input) };
    return h('div', {}, h('label', { for: input.id }, key), input, notes[key].said);
  };
  const choice = (key, label, names) => {
    const select = h('select', { id: `gemm-${key}`, onchange: () => set(key, select.value) }, names.map((name) => h('option', { value: name }, name)));
    notes[key] = { input: select, mark: () => {} };
    return h('div', {}, h('label', { for: select.id }, label), select);
  };
  const form = h('form', { class: 'row', onsubmit: (event) => event.preventDefault() }, kSizes.map(size), choice('type', 'Type', kTypes), choice('along', 'Staircase over', kSizes));
  const section = card('One GEMM', 'A matrix of m × k times one of k × n, on the chip of the scenario. Its sliders apply: change the number of SMs and watch the waves.', form, told);
  const set = (key, value) => { look(`gemm_${key}`, value); run(); };
  const grey = (stale) => { for (const one of [told, place]) one.classList.toggle('stale', stale); };
  async function run() {
    const mine = (asked += 1);
    const question = current();
    const gemm = gemmOf(question);
    try {
      const hardware = await gpuOf(question.scenario);
      if (!hardware) throw new Error('The playground needs a GPU that is shipped.');
      const query = new URLSearchParams({ hardware, ...(question.engine === 'roofline' && { engine: 'roofline' }) });
      for (const change of changes(question)) if (change.startsWith('hardware.')) query.append('set', change.slice('hardware.'.length));
      const sizes = stairsOf(gemm[gemm.along]);
      const lines = await kernels(query, [gemm, ...sizes.map((value) => ({ ...gemm, [gemm.along]: value }))].map(caseOf).join('\n'));
      if (mine !== asked) return;
      const [{ predicted, error }, ...rest] = lines;
      if (error) throw new Error(error);
      told.replaceChildren(...answer(predicted));
      const points = sizes.map((value, i) => ({ size: value, p: rest[i].predicted })).filter(({ p }) => p);
      place.replaceChildren(settle(card('Wave quantization', `The time climbs in steps: a wave that is partly empty takes as long as a full one. Other sizes get other kernels. The line marks ${gemm.along} ${count(gemm[gemm.along])}.`, chart('staircase', staircase(gemm, points)))));
      drawn();
      grey(Object.values(notes).some(({ input }) => input.hasAttribute('aria-invalid')));
    } catch (error) {
      if (mine === asked) told.replaceChildren(h('p', { class: 'bad' }, error.message));
    }
  }
  function show(state) {
    const gemm = gemmOf(state);
    for (const [key, { input, mark }] of Object.entries(notes)) if (document.activeElement !== input) { input.value = gemm[key]; mark(null); }
    run();
  }
  return { elements: [section, place], show };
}
