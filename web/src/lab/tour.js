// A tour of five minutes: from one step of BERT to why it takes as long as it does. Each stop shows a view and asks something;
// after the guess it says what the answer at hand says to it.
import { h } from '../dom.js';
import { bytes, count, digits, limitName, percent, seconds, words } from '../format.js';
import { current, restore, update } from './state.js';

const kStep = { hardware: 'nvidia-h200-sxm-141gb', model: 'bert-large', training: { micro_batch: 4, sequence_length: 512, precision: 'fp32' } };
const largest = (values) => Object.entries(values).sort((a, b) => b[1] - a[1])[0];
const share = (part, { step }) => percent(part / step.time_s);
const band = (value, ...limits) => limits.filter((limit) => value >= limit).length; // 0 below the first
const timesAsFast = ({ step }, { pinned }) => pinned.step.time_s / step.time_s;
const gains = ({ sensitivity }) => Object.entries(sensitivity ?? {}).filter(([, v]) => v.time_saved_s !== undefined).sort((a, b) => b[1].time_saved_s - a[1].time_saved_s);
const offered = (p) => gains(p).slice(0, 3).map(([key]) => words(key)).sort();

/** A view of the tour's step; `change` edits the question, `pinned` keeps the step as it was as A. */
const ask = (view, { pinned = false, change = () => {} } = {}) => () => update((s) => {
  Object.assign(s, { scenario: structuredClone(kStep), set: {}, engine: 'analytic', pinned: null, view });
  if (pinned) s.pinned = structuredClone({ scenario: s.scenario, set: s.set, engine: s.engine });
  change(s);
});
const inBf16 = (s) => { s.scenario.training.precision = 'amp-bf16'; };

/** title; what is asked and the guesses; what it is about (`at`) and how to get there (`go`); `then`: what the guess is tried
 *  with; `right`: which guess is; `says`: what the answer says. */
const kStops = [
  { title: 'One step of BERT-Large', about: 'Four sequences of 512 tokens, forward, backward and optimizer, on one H200 in fp32. Every change of the scenario is answered at once. How much of the GPU’s memory does the step need?', guesses: ['A tenth or less', 'About half', 'Nearly all'], at: '#summary', go: ask('overview'),
    right: ({ memory }) => band(memory.device_used_bytes / memory.capacity_bytes, 0.2, 0.75), says: ({ step, memory }) => `The GPU holds ${bytes(memory.device_used_bytes)} of ${bytes(memory.capacity_bytes)}. The step takes ${seconds(step.time_s)}, with a range of ${seconds(step.low_s)} to ${seconds(step.high_s)}.` },
  { title: 'Where the time goes', about: 'The chart splits the step by kind of kernel. Which kind takes most of it?', guesses: ['Tensor contractions: the GEMMs', 'Normalization and element-wise kernels', 'The optimizer'], at: '#time-by-class', go: ask('overview'),
    right: ({ time_by_class: t }) => { const all = [t.tensor_contraction, (t.normalization ?? 0) + (t.elementwise ?? 0), t.optimizer ?? 0]; return all.indexOf(Math.max(...all)); }, says: (p) => `GEMMs take ${share(p.time_by_class.tensor_contraction, p)}. The optimizer, which runs no GEMM, takes ${share(p.time_by_class.optimizer, p)}.` },
  { title: 'The roofline', about: 'Each point is a kernel. DRAM bandwidth limits the points under the slope, arithmetic those under a flat roof. Where do the largest points lie?', guesses: ['Under the slope', 'Under a flat roof'], at: '#roofline', go: ask('overview'),
    right: (p) => (largest(p.limited_by)[0] === 'compute' ? 1 : 0), says: (p) => { const [limit, time] = largest(p.limited_by); return `Under a flat roof: ${limitName(limit)} limits ${share(time, p)} of the step. GEMMs in fp32 run on the CUDA cores, far below the roof of the tensor cores.`; } },
  { title: 'The same step in time', about: 'The bottom lane shows the host, the lane above it the GPU. Drag the slider below the chart to zoom in. Does the GPU wait for the host?', guesses: ['Hardly ever', 'For a tenth of the step or more'], at: '#timeline', go: ask('timeline'),
    right: ({ host, step }) => band(host.exposed_s / step.time_s, 0.1), says: ({ host, step }) => `The GPU waits ${seconds(host.exposed_s)}. The host needs ${seconds(host.time_s)} for ${count(step.kernel_count)} kernels and runs ahead.` },
  { title: 'Inside a kernel', about: 'The table lists every kernel and shape, longest first; a name opens the kernel. How much of the step do all launches of the first one take?', guesses: ['Less than a tenth', 'A tenth to a third', 'More than a third'], at: '#kernels', go: ask('kernels'),
    right: ({ kernels, step }) => band(kernels[0].time_s / step.time_s, 0.1, 1 / 3), says: (p) => { const [k] = p.kernels; return `${k.name} takes ${share(k.time_s, p)}: ${count(k.count)} launches, ${seconds(k.time_s)} together. Click it to see its waves, its occupancy and its equation.`; } },
  { title: 'What if?', about: 'Suppose that the DRAM had twice the bandwidth. How much faster would this step be?', guesses: ['Less than a tenth', 'About a third', 'About twice as fast'], at: '#roofline', go: ask('overview'),
    then: { at: '#against', go: ask('overview', { pinned: true, change: (s) => { s.set['dram.bandwidth'] = '9.6 TB/s'; } }) },
    right: (p, lab) => band(timesAsFast(p, lab), 1.1, 1.6), says: ({ step }, { pinned }) => `The step saves ${seconds(pinned.step.time_s - step.time_s)} of ${seconds(pinned.step.time_s)}. Kernels that wait for arithmetic gain nothing from faster memory.` },
  { title: 'The better change', about: 'Now the DRAM is as it was. With precision amp-bf16 the GEMMs run on the tensor cores. How many times as fast would the step be?', guesses: ['1 to 1.5 times', '1.5 to 6 times', 'More than 6 times'], at: '#summary', go: ask('overview', { pinned: true }),
    then: { at: '#content', go: ask('compare', { pinned: true, change: inBf16 }) },
    right: (_, { compared }) => band(compared.scenarios[0].step.time_s / compared.scenarios[1].step.time_s, 1.5, 6), says: (_, { compared: { scenarios: [a, b] } }) => `The step is ${digits(a.step.time_s / b.step.time_s, 2)} times as fast: ${seconds(a.step.time_s)} became ${seconds(b.step.time_s)}. The charts split both steps by kind of kernel.` },
  { title: 'Memory', about: 'The chart shows what the GPU’s memory holds over the step. In which phase is the peak?', guesses: ['Forward pass', 'Backward pass', 'Optimizer step'], at: '#memory', go: ask('memory', { change: inBf16 }),
    right: ({ memory: { peak } }) => Math.max(0, ['forward', 'backward', 'optimizer'].indexOf(peak.phase)), says: ({ memory }) => `The peak is ${bytes(memory.peak_allocated_bytes)}, in the ${memory.peak.phase} phase. Activations pile up in the forward pass and are freed in the backward pass.` },
  { title: 'The number that matters', about: 'Each row of the table is a prediction with a tenth more of one resource. Which resource would you buy?', guesses: offered, at: '#sensitivity', go: ask('advice', { change: inBf16 }),
    right: (p) => offered(p).indexOf(words(gains(p)[0][0])), says: (p) => { const [[key, { time_saved_s: saved }]] = gains(p); return `A tenth more of ${words(key)} saves most: ${seconds(saved)}, ${share(saved, p)} of the step.`; } },
  { title: 'Now you', about: 'The exercises ask for a prediction first and answer mistakes with hints. Undo brings anything back, and the link holds the whole question.', guesses: [], at: '#views', go: () => update((s) => { s.view = 'exercises'; }) },
];

/** `lab`: with the answer at hand; `lab.nextPicture()`: the next picture is there. */
export function tour(lab) {
  if (document.getElementById('tour')) return;
  const before = structuredClone(current());
  let at = -1;
  const title = h('h2', { id: 'tour-title' });
  const text = h('p', { id: 'tour-asks' });
  const guesses = h('div', { id: 'tour-guesses', role: 'group', 'aria-labelledby': 'tour-asks' });
  const said = h('p', { id: 'tour-says', role: 'status' });
  const next = h('button', { type: 'button', class: 'primary', id: 'tour-next', onclick: () => show(at + 1) });
  const back = h('button', { type: 'button', id: 'tour-back', onclick: () => show(at - 1) }, 'Back');
  const leave = h('button', { type: 'button', id: 'tour-leave', onclick: () => dialog.close() }, 'Leave');
  const dialog = h('dialog', { 'aria-labelledby': 'tour-title', id: 'tour' }, title, text, guesses, said, h('div', { class: 'buttons' }, next, back, leave));
  dialog.addEventListener('close', () => {
    dialog.remove();
    document.documentElement.style.scrollPadding = '';
    if (at < kStops.length - 1) restore(before); // who leaves early finds the question as it was; undo brings the tour's back
    document.getElementById('do-tour').focus();
  });
  dialog.addEventListener('keydown', (event) => { if (event.key === 'Escape') dialog.close(); });
  async function shown({ go }) {
    const drawn = lab.nextPicture();
    go();
    await drawn;
  }
  /** Brings into sight what is asked about; on a phone the tour lies over the end of the page. */
  function inSight({ at: place }) {
    document.documentElement.style.scrollPadding = `8px 0 ${dialog.offsetHeight + 8}px`;
    document.querySelector(place)?.scrollIntoView({ block: 'nearest' });
  }
  async function guess(stop, index, button) {
    button.setAttribute('aria-pressed', 'true');
    for (const one of guesses.children) one.disabled = true;
    if (stop.then) await shown(stop.then);
    if (kStops[at] !== stop) return;
    said.textContent = `${stop.right(lab.answer, lab) === index ? 'Right.' : 'Not quite.'} ${stop.says(lab.answer, lab)}`;
    inSight(stop.then ?? stop);
    next.focus({ preventScroll: true });
  }
  async function show(number) {
    if (number >= kStops.length) return dialog.close();
    at = Math.max(0, number);
    const stop = kStops[at];
    title.textContent = `${at + 1}. ${stop.title}`;
    text.textContent = stop.about;
    said.textContent = '';
    guesses.replaceChildren();
    next.textContent = at + 1 < kStops.length ? `Next (${at + 1} of ${kStops.length})` : 'Done';
    back.disabled = at === 0;
    await shown(stop);
    if (kStops[at] !== stop) return;
    const offers = typeof stop.guesses === 'function' ? stop.guesses(lab.answer) : stop.guesses;
    guesses.replaceChildren(...offers.map((offer, index) => { const button = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => guess(stop, index, button) }, offer); return button; }));
    inSight(stop);
    (guesses.firstChild ?? next).focus({ preventScroll: true });
  }
  document.body.append(dialog);
  dialog.show();
  show(0);
}
