// A short tour of the lab, one dialog after the other.
import { h } from '../dom.js';

const kStops = [
  ['The question', 'On the left: a network, a chip, how it is trained. Every change is predicted at once; nothing leaves this machine.', '#controls'],
  ['A chip that is not built', 'Move a slider: what if the DRAM were twice as fast? The mark in the middle is the shipped number, and “source” says where it is from.', '#chip'],
  ['The answer', 'Step time with its range, memory against what the device has, and what limits each kernel.', '#content'],
  ['Before and after', 'Pin an answer, change something, and the compare view says what became of the time, class by class. Undo brings anything back; the link holds all of it.', '#actions'],
  ['Inside a kernel', 'In the view Kernels choose one: its tiles, its blocks on the SMs, its equation. Then try the exercises.', '#views'],
];

export function tour() {
  let at = 0;
  const title = h('h2', { id: 'tour-title' });
  const text = h('p', {});
  const next = h('button', { type: 'button', class: 'primary', onclick: () => show(at + 1) });
  const dialog = h('dialog', { 'aria-labelledby': 'tour-title', id: 'tour' }, title, text, h('div', { class: 'buttons' }, next, h('button', { type: 'button', onclick: () => dialog.close() }, 'Leave')));
  dialog.addEventListener('close', () => dialog.remove());
  function show(stop) {
    if (stop >= kStops.length) return dialog.close();
    at = stop;
    [title.textContent, text.textContent] = kStops[stop];
    next.textContent = stop + 1 < kStops.length ? `Next (${stop + 1} of ${kStops.length})` : 'Done';
    document.querySelector(kStops[stop][2])?.scrollIntoView({ block: 'nearest' });
  }
  document.body.append(dialog);
  show(0);
  dialog.showModal();
}
