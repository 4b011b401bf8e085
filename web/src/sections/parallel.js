// What several GPUs gain and what their communication costs.
import { card, h, number } from '../dom.js';
import { bytes, count, percent, seconds, words } from '../format.js';
import { table } from '../table.js';

export function parallel({ prediction }) {
  const several = prediction.parallel;
  if (!several) return [];
  const step = prediction.step.time_s;
  const rank = several.ranks[0];
  const { ranks } = several;
  const classes = [
    { title: 'ranks', text: true, value: (r) => r.class },
    { title: 'number', value: (r) => r.ranks, show: count },
    { title: 'step', value: (r) => r.step_s, show: seconds },
    ...(ranks.some((r) => r.busy_s !== undefined) ? [{ title: 'kernels', value: (r) => r.busy_s, show: seconds }, { title: 'bubble', value: (r) => r.bubble_s, show: (s) => `${seconds(s)} (${percent(s / step)})` }] : []),
    { title: 'allocated', value: (r) => r.memory.peak_allocated_bytes, show: bytes },
    { title: 'memory of the device', value: (r) => r.memory.device_used_bytes, show: bytes },
    { title: 'fits', text: true, value: (r) => (r.memory.fits ? 'yes' : 'no'), show: (fits) => h('span', { class: fits === 'yes' ? 'good' : 'bad' }, fits) },
  ];
  const columns = [
    { title: 'collective', text: true, value: (use) => words(use.kind) },
    { title: 'among', text: true, value: (use) => `${words(use.group)} ranks` },
    { title: 'number', value: (use) => use.count, show: count },
    { title: 'bytes', value: (use) => use.bytes, show: bytes },
    { title: 'time', value: (use) => use.time_s, show: seconds },
    { title: 'exposed', value: (use) => use.exposed_s, show: (s) => `${seconds(s)} (${percent(s / step)})` },
  ];
  return [card('Several GPUs', several.limit ? `${several.limit[0].toUpperCase()}${several.limit.slice(1)}.` : 'The GPUs do not wait for each other.',
    h('div', { class: 'numbers', id: 'parallel' },
      number('GPUs', count(several.gpus), `each as fast as ${percent(several.efficiency)} of one alone`),
      number('Communication exposed', seconds(several.exposed_communication_s), `${percent(several.exposed_communication_s / step)} of the step`),
      number('Communication hidden', seconds(several.hidden_communication_s), 'beside other kernels'),
      several.bubble_s > 0 ? number('Bubble', seconds(several.bubble_s), `${percent(several.bubble_s / step)} of the step, a rank waits for others`) : null,
      rank ? number('Communicators', bytes(rank.memory.communicator_bytes), 'of each GPU, outside the allocator') : null,
    ),
    several.communication.length ? table(columns, several.communication, { id: 'communication', sort: 4 }) : null,
    ranks.length > 1 ? table(classes, ranks, { id: 'rank-classes' }) : null)];
}
