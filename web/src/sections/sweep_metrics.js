// What a sweep says of its points, and the choices between them.
import { h } from '../dom.js';
import { bytes, digits, percent, seconds } from '../format.js';

export const kMetrics = [
  { key: 'step_time_s', name: 'step time', show: seconds },
  { key: 'memory_bytes', name: 'memory of the device', show: bytes },
  { key: 'samples_per_s', name: 'sequences/s', show: (v) => digits(v) },
  { key: 'tokens_per_s', name: 'tokens/s', show: (v) => digits(v) },
  { key: 'mfu', name: 'MFU', show: percent },
  { key: 'gpu_active', name: 'GPU active', show: percent },
  { key: 'power_w', name: 'power', show: (v) => `${digits(v)} W` },
  { key: 'energy_j', name: 'energy of a step', show: (v) => `${digits(v)} J` },
  { key: 'energy_per_sample_j', name: 'energy a sequence', show: (v) => `${digits(v)} J` },
  { key: 'price_usd_per_million', name: 'USD a million sequences', show: (v) => digits(v) },
  { key: 'ridge_flop_per_byte', name: 'ridge point', show: (v) => `${digits(v)} FLOP/B` },
];

export function choice(label, options, chosen, change) {
  const list = h('select', { 'aria-label': label, onchange: (event) => change(event.target.value) }, options.map(([value, name]) => h('option', { value, ...(value === chosen ? { selected: '' } : {}) }, name)));
  return h('label', {}, `${label} `, list);
}

/** Axes along which something changes. */
export const changing = (sweep) => sweep.axes.filter((axis) => axis.values.length > 1);

/** Points that answer the goal: a whole Pareto front, else the best one. */
export const answering = (sweep) => new Set(sweep.goal.search === 'pareto' ? sweep.best : sweep.best.slice(0, 1));

/** The last part of a key, or the last two where one alone would not tell axes apart. */
export function shortNames(axes) {
  const tail = (name, parts) => name.split('.').slice(-parts).join('.');
  return Object.fromEntries(axes.map((a) => [a.name, axes.some((b) => b !== a && tail(b.name, 1) === tail(a.name, 1)) ? tail(a.name, 2) : tail(a.name, 1)]));
}
