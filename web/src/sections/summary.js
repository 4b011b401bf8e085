// What the answer is, in six numbers.
import { h, number } from '../dom.js';
import { bytes, count, digits, percent, seconds } from '../format.js';

export function summary({ prediction, device }) {
  const { step } = prediction;
  const memory = prediction.memory ?? prediction.memory_as_recorded; // of a recording that says nothing: neither
  const share = !memory ? 0 : memory.device_used_bytes / memory.capacity_bytes;
  const meter = !memory ? '' : h('div', { class: `meter ${memory.fits ? '' : 'over'}` }, h('i', { style: `width:${Math.min(100, 100 * share)}%` }));
  const fits = !memory ? 'the recording says nothing of memory' : memory.fits
    ? h('small', { class: 'good' }, `fits: ${percent(share)} of ${bytes(memory.capacity_bytes)}`)
    : h('small', { class: 'bad' }, `does not fit in ${bytes(memory.capacity_bytes)}`);
  const range = `${seconds(step.low_s)} to ${seconds(step.high_s)}` + (step.validated ? '' : ', estimated');
  return h('section', {},
    h('h1', {}, prediction.scenario || prediction.hardware),
    h('p', {}, `${device.title}, engine ${prediction.engine}`),
    h('div', { class: 'numbers', style: 'margin-top:14px' },
      number('Step time', seconds(step.time_s), range),
      number('Throughput', `${digits(step.tokens_per_s)} tokens/s`, `${digits(step.samples_per_s)} sequences/s`),
      number('Model FLOPs utilisation', percent(step.mfu), 'of the peak of the precision'),
      number('Memory of the device', memory ? bytes(memory.device_used_bytes) : 'unknown', fits, meter),
      number('GPU busy', seconds(step.gpu_busy_s), `${percent(step.kernel_active_fraction)} of the step, ${count(step.kernel_count)} kernels`),
      number('Host', seconds(step.host_time_s), step.host_time_s > step.gpu_busy_s ? 'longer than the GPU is busy' : 'hidden behind the GPU'),
      step.power_w > 0 ? number('Power of the board', `${digits(step.power_w)} W`, `${digits(step.energy_j)} J a step (${digits(step.energy_low_j)} to ${digits(step.energy_high_j)})`) : null,
      number('Clock of the SMs', `${count(Math.round(step.clock_mhz))} MHz`, prediction.limited_by.power > 0.001 * step.time_s ? `limited by power: ${seconds(prediction.limited_by.power)} of the step` : 'not limited by power'),
    ));
}
