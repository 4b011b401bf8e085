// The verdict: does the step fit, how long does it take, how much memory does it need, what limits it; the rest small below.
import { h } from '../dom.js';
import { bytes, count, digits, limitName, percent, seconds } from '../format.js';

const cell = (label, value, kind, ...more) => h('div', {}, h('span', {}, label), h('b', { class: kind }, value), ...more.map((m) => (typeof m === 'string' ? h('small', {}, m) : m)));

/** Memory that is needed: more than a step that runs out of it could take. */
export const neededOf = (memory) => Math.max(memory.device_used_bytes, memory.fits ? 0 : memory.needed_bytes ?? 0);

function fitting(memory) {
  if (!memory) return cell('Fits', 'unknown', '', 'the recording has no memory');
  const capacity = memory.capacity_bytes;
  return memory.fits
    ? cell('Verdict', 'Fits', 'good', `${bytes(capacity - memory.device_used_bytes)} of ${bytes(capacity)} stay free`)
    : cell('Verdict', 'Does not fit', 'bad', `${bytes(Math.max(memory.out_of_memory?.missing_bytes ?? 0, neededOf(memory) - capacity))} are missing`);
}

function memoryOf(memory, name) {
  if (!memory) return cell(name, 'unknown', '');
  const share = neededOf(memory) / memory.capacity_bytes;
  const meter = h('div', { class: `meter ${memory.fits ? '' : 'over'}` }, h('i', { style: `width:${Math.min(100, 100 * share)}%` }));
  return cell(name, bytes(neededOf(memory)), '', `${percent(share)} of ${bytes(memory.capacity_bytes)}`, meter);
}

function limiterOf(limits, total) {
  const [[most, time], [next, less] = []] = Object.entries(limits).sort((a, b) => b[1] - a[1]);
  const also = less > 0.01 * total ? `, then ${limitName(next)} (${percent(less / total).replace(' ', '\u00a0')})` : '';
  return cell('Limited by', limitName(most), '', `${percent(time / total)} of the step${also}`);
}

const fact = (label, value, more = '') => h('div', {}, h('dt', {}, label), h('dd', {}, value, more && h('small', {}, more)));

function facts({ step, limited_by: limits }) {
  return h('dl', { class: 'facts' },
    fact('Throughput', digits(step.samples_per_s), 'sequences/s'),
    fact('MFU', percent(step.mfu), 'of the precision’s peak'),
    fact('GPU busy', seconds(step.gpu_busy_s), `${percent(step.kernel_active_fraction)} of the step, ${count(step.kernel_count)} kernels`),
    fact('Host', seconds(step.host_time_s), step.host_time_s > step.gpu_busy_s ? 'longer than the GPU is busy' : 'hidden behind the GPU'),
    step.power_w > 0 ? fact('Power', `${digits(step.power_w)} W`, `${digits(step.energy_low_j)} to ${digits(step.energy_high_j)} J per step`) : null,
    fact('SM clock', `${count(Math.round(step.clock_mhz))} MHz`, limits.power > 0.001 * step.time_s ? `power-throttled: ${seconds(limits.power)} of the step` : 'not limited by power'));
}

export function summary({ prediction, device }) {
  const { step } = prediction;
  const memory = prediction.memory ?? prediction.memory_as_recorded; // of a recording that says nothing: neither
  const runs = !memory || memory.fits;
  const range = `${seconds(step.low_s)} to ${seconds(step.high_s)}${step.validated ? '' : ', estimated'}`;
  return h('section', { class: 'card', id: 'summary' },
    h('div', { class: 'what' }, h('h1', {}, prediction.scenario || prediction.hardware), h('p', {}, `${device.title}, engine ${prediction.engine}`)),
    h('div', { class: 'verdict' },
      fitting(memory),
      runs ? cell('Step time', seconds(step.time_s), '', `${range}; ${digits(step.tokens_per_s)} tokens/s`)
        : cell('Step time', 'none', '', `${seconds(step.time_s)} if it had the memory`),
      memoryOf(memory, prediction.parallel?.gpus > 1 ? 'Memory per GPU' : 'Memory'), limiterOf(prediction.limited_by, step.time_s)),
    facts(prediction));
}
