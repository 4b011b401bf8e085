// Ways to run a step that does not fit, each predicted; a button takes one.
import { card, h } from '../dom.js';
import { bytes, digits, seconds } from '../format.js';
import { asked, behind } from './draw.js';
import { change } from './commands.js';
import { update } from './state.js';

const take = (changes) => update((s) => change(s.scenario, s.set, changes.map((one) => [one.slice(0, one.indexOf('=')), one.slice(one.indexOf('=') + 1)])));

/** `lab.more(pieces)`: more of the answer at hand. Nothing where the step runs. */
export function ladder({ prediction }, lab, leaveOut) {
  if (!prediction.memory?.out_of_memory) return [];
  const columns = [
    { title: 'change', text: true, value: (r) => r.label, show: (label, r) => (r.adds ? `+ ${label}` : label) },
    { title: 'memory', value: (r) => r.needed_bytes, show: bytes },
    { title: 'step', value: (r) => r.time_s ?? Infinity, show: (s, r) => (r.runs ? h('span', { class: r.fits ? 'good' : 'warn' }, r.fits ? seconds(s) : `${seconds(s)}, tight`) : h('span', { class: 'bad' }, 'does not fit')) },
    { title: 'tokens/s', value: (r) => r.tokens_per_s ?? 0, show: (rate) => (rate ? digits(rate) : '–') },
    { title: 'try', text: true, value: (r) => r.changes.join(' '), show: (changes, r) => h('button', { type: 'button', class: 'take', title: changes, 'aria-label': `Try ${r.label}`, onclick: () => take(r.changes) }, 'Try') },
  ];
  const rows = asked(async () => (await lab.more({ ladder: 1, leave_out: leaveOut })).ladder);
  return [card('What would fit', 'Each row is a prediction. A row with + keeps the changes of the row above.', behind('ladder', 'Predicted changes', columns, rows, true))];
}
