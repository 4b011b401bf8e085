// What several GPUs gain and what their communication costs.
import { card, h, number } from '../dom.js';
import { bytes, count, percent, seconds, words } from '../format.js';
import { table } from '../table.js';

export function parallel({ prediction }) {
  const several = prediction.parallel;
  if (!several) return [];
  const step = prediction.step.time_s;
  const rank = several.ranks[0];
  const columns = [
    { title: 'collective', text: true, value: (use) => words(use.kind) },
    { title: 'among', text: true, value: (use) => `${words(use.group)} ranks` },
    { title: 'number', value: (use) => use.count, show: count },
    { title: 'bytes', value: (use) => use.bytes, show: bytes },
    { title: 'time', value: (use) => use.time_s, show: seconds },
    { title: 'exposed', value: (use) => use.exposed_s, show: (s) => `${seconds(s)} (${percent(s / step)})` },
  ];
  return [card('Several GPUs', several.limit ? `${several.limit[0].toUpperCase()}${several.limit.slice(1)}.` : 'Nothing keeps the GPUs waiting for each other.',
    h('div', { class: 'numbers', id: 'parallel' },
      number('GPUs', count(several.gpus), `each as fast as ${percent(several.efficiency)} of one alone`),
      number('Communication exposed', seconds(several.exposed_communication_s), `${percent(several.exposed_communication_s / step)} of the step`),
      number('Communication hidden', seconds(several.hidden_communication_s), 'beside other kernels'),
      rank ? number('Communicators', bytes(rank.memory.communicator_bytes), 'of each GPU, outside the allocator') : null,
    ),
    table(columns, several.communication, { id: 'communication', sort: 4 }))];
}
