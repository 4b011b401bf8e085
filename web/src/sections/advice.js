// Changes that were predicted and help, and what to know about this prediction.
import { card, h } from '../dom.js';
import { bytes, percent, seconds, signed } from '../format.js';
import { table } from '../table.js';

export function advice({ prediction }) {
  const sections = [];
  const step = prediction.step.time_s;
  if (prediction.advice.length) {
    const columns = [
      { title: 'change', text: true, value: (a) => a.change, show: (change) => h('code', {}, change) },
      { title: 'step', value: (a) => -a.time_saved_s, show: (s) => h('span', { class: s < 0 ? 'good' : s > 0 ? 'bad' : '' }, `${signed(seconds(s), s)} (${signed(percent(s / step), s)})`) },
      { title: 'memory', value: (a) => -a.memory_saved_bytes, show: (b) => h('span', { class: b < 0 ? 'good' : b > 0 ? 'bad' : '' }, signed(bytes(b), b)) },
      { title: 'why', text: true, class: 'wide', value: (a) => a.why },
    ];
    sections.push(card('What would help', 'Each change was predicted by itself; nothing here is a rule of thumb.', table(columns, prediction.advice, { id: 'advice' })));
  }
  if (prediction.notes.length) sections.push(card('Notes', 'The approximations of this prediction.', h('ul', { class: 'notes' }, prediction.notes.map((note) => h('li', {}, note.replaceAll('--set ', '').replaceAll(/--(?=[a-z])/g, ''))))));
  return sections;
}
