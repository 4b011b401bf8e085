// A sweep of one or two keys around the question, with progress, and given up when told.
import { settle } from '../chart.js';
import { card, h } from '../dom.js';
import { sweep } from '../sections/sweep.js';
import { long } from './ask.js';
import { changes, current, flow } from './state.js';

const kKeys = ['training.micro_batch', 'training.sequence_length', 'training.precision', 'training.attention', 'hardware', 'hardware.dram.bandwidth', 'hardware.sm.count', 'hardware.clock.sustained', 'hardware.l2.capacity'];

/** "1, 2, 4" to the values of an axis; numbers as numbers. */
export const valuesOf = (text) => text.split(',').map((v) => v.trim()).filter(Boolean).map((v) => (/^[-+]?\d+(\.\d+)?$/.test(v) ? Number(v) : v));

export function sweepOf(question, axes) {
  const scenario = structuredClone(question.scenario);
  const all = {};
  // What was changed of the chip is an axis with one value: a sweep's scenario has no place for it.
  for (const change of changes(question)) {
    const [key, value] = [change.slice(0, change.indexOf('=')), change.slice(change.indexOf('=') + 1)];
    if (!axes.some((axis) => axis.key === key)) all[key] = [value];
  }
  for (const { key, values } of axes) all[key] = values;
  return { title: `Sweep of ${axes.map((a) => a.key).join(' and ')}`, scenario, axes: all, goal: 'fastest', ...(question.engine === 'analytic' ? {} : { engine: question.engine }) };
}

export function sweepView(drawn) {
  const list = h('datalist', { id: 'sweep-keys' }, kKeys.map((key) => h('option', { value: key })));
  const input = (id, label, value, more = {}) => h('label', {}, label, h('input', { id, value, ...more }));
  const form = h('form', { class: 'row', onsubmit: (event) => { event.preventDefault(); run(); } },
    input('key-1', 'Key', 'training.micro_batch', { list: 'sweep-keys' }), input('values-1', 'Values', '1, 2, 4, 8, 16, 32'),
    input('key-2', 'Second key (may be empty)', 'training.precision', { list: 'sweep-keys' }), input('values-2', 'Values', 'fp32, amp-bf16'),
    h('button', { type: 'submit', class: 'primary', id: 'run-sweep' }, 'Run'), h('button', { type: 'button', id: 'stop-sweep', disabled: '', onclick: () => running?.cancel() }, 'Stop'));
  const bar = h('progress', { id: 'sweep-progress', max: 1, value: 0, 'aria-label': 'Points done' });
  const told = h('p', { role: 'status', id: 'sweep-told' });
  const place = h('div', { class: 'contents' });
  let running = null;
  async function run() {
    const value = (id) => form.querySelector(`#${id}`).value.trim();
    const axes = [1, 2].map((i) => ({ key: value(`key-${i}`), values: valuesOf(value(`values-${i}`)) })).filter((axis) => axis.key && axis.values.length);
    const stop = form.querySelector('#stop-sweep');
    stop.disabled = false;
    told.textContent = 'Running …';
    told.className = '';
    bar.value = 0;
    const begin = performance.now();
    running = long('/api/sweep', sweepOf(current(), axes), ({ done, total }) => { bar.max = total; bar.value = done; told.textContent = `${done} of ${total} points`; });
    try {
      const answer = await running.answer;
      told.textContent = `${answer.points.length} points in ${Math.round(performance.now() - begin)} ms`;
      bar.max = bar.value = 1;
      place.replaceChildren(...sweep(answer).map(settle));
      drawn();
    } catch (error) {
      told.textContent = error.message;
      told.className = 'bad';
    }
    running = null;
    stop.disabled = true;
  }
  return { elements: [card('Sweep', `Every combination of the values, around the question on the left. ${flow(kKeys.slice(0, 3)).slice(1, -1)} … any key goes.`, list, form, bar, told), place], show: () => {} };
}
