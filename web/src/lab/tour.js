// A tour of five minutes: from one step of BERT to why it takes as long as it does. Each stop shows a view, asks something
// that can be guessed, and says what the answer at hand says to it.
import { h } from '../dom.js';
import { bytes, count, percent, seconds, words } from '../format.js';
import { current, restore, update } from './state.js';

const kStep = { hardware: 'nvidia-h200-sxm-141gb', model: 'bert-large', training: { micro_batch: 4, sequence_length: 512, precision: 'fp32' } };
const kEngine = 'analytic';
const largest = (values) => Object.entries(values).sort((a, b) => b[1] - a[1])[0];
const share = (part, { step }) => percent(part / step.time_s);

/** Another question, view or both; `kernel` is chosen as the view's longest. */
const ask = (view, change = () => {}) => () => update((s) => { change(s); s.view = view; });
const first = ask('overview', (s) => { Object.assign(s, { scenario: structuredClone(kStep), set: {}, engine: kEngine, pinned: null }); });
const pin = (s) => { s.pinned = structuredClone({ scenario: s.scenario, set: s.set, engine: s.engine }); };

/** title, what is said before the picture is looked at, where it is, how to get there, and what the answer says. */
const kStops = [
  { title: 'One step of BERT-Large', about: 'Four sequences of 512 tokens, forward, backward and optimizer, on one H200 in fp32. The question stands on the left; every change of it is answered at once, and nothing leaves this machine.', at: '#content', go: first,
    says: ({ step, memory }) => `The step takes ${seconds(step.time_s)}; measured steps of this kind lay between ${seconds(step.low_s)} and ${seconds(step.high_s)} of such predictions. The device holds ${bytes(memory.device_used_bytes)} for it.` },
  { title: 'Where the time goes', about: 'Guess: which share of it are matrix products?', at: '#time-by-class', go: ask('overview'),
    says: (p) => `${share(p.time_by_class.tensor_contraction, p)}. The optimizer, which does no product at all, takes ${share(p.time_by_class.optimizer, p)}.` },
  { title: 'The roofline', about: 'A point is a kind of kernel. Under the slope it waits for memory, under a flat roof for arithmetic. Hold the pointer over one, or open the numbers below. Where do the large points lie?', at: '#roofline', go: ask('overview'),
    says: (p) => { const [limit, time] = largest(p.limited_by); return `${share(time, p)} of the step are limited by ${words(limit)}: products in fp32 use the CUDA cores, whose roof is a fifteenth of that of the tensor cores.`; } },
  { title: 'The same step in time', about: 'Below, the host issues kernels; above, the GPU works them off. Drag below the picture to look closer. Does the GPU ever wait for the host?', at: '#timeline', go: ask('timeline'),
    says: ({ host, step }) => `${host.exposed_s > 0.01 * step.time_s ? `Yes: ${seconds(host.exposed_s)}.` : 'Hardly.'} The host needs ${seconds(host.time_s)} for ${count(step.kernel_count)} kernels and runs ahead.` },
  { title: 'Inside a kernel', about: 'Any name in the table opens a kernel. Its result is cut into tiles, a block of threads works on each, and as many blocks run at once as the SMs hold.', at: '#kernel, #kernels', go: ask('kernels'),
    says: ({ kernels }) => { const k = kernels?.[0]; return k ? `The one that takes most is ${k.name}: ${count(k.count)} launches, ${seconds(k.time_s)} together. Choose it, and see its waves, its occupancy and its equation.` : ''; } },
  { title: 'What if?', about: 'The answer is pinned now as A, and the DRAM made twice as fast with its slider. Guess how much is won, then look.', at: '#against', go: ask('overview', (s) => { if (!s.pinned) pin(s); s.set['dram.bandwidth'] = '9.6 TB/s'; }),
    says: ({ step }, { pinned }) => (pinned ? `${seconds(pinned.step.time_s - step.time_s)} of ${seconds(pinned.step.time_s)}: what waits for arithmetic does not get faster with memory.` : '') },
  { title: 'The better change', about: 'The DRAM is as it was. Precision is amp-bf16 now: products go to the tensor cores. The view says, class by class, what became of the time.', at: '#content', go: ask('compare', (s) => { s.set = {}; s.scenario.training.precision = 'amp-bf16'; }),
    says: (_, { compared }) => (compared ? `${seconds(compared.scenarios[0].step.time_s)} became ${seconds(compared.scenarios[1].step.time_s)}. Each bar begins where the one before ended, so the differences add up.` : '') },
  { title: 'Memory', about: 'What lies in memory over the step, and block by block. Where is the peak, and what makes it?', at: '#memory', go: ask('memory'),
    says: ({ memory }) => `${bytes(memory.peak_allocated_bytes)}, reached in the ${memory.peak.phase}. Activations pile up in the forward pass and are given back in the backward pass.` },
  { title: 'Why: the number that matters', about: 'Each row: a tenth more of one resource, predicted anew. Which would you buy?', at: '#sensitivity', go: ask('advice'),
    says: ({ sensitivity, step }) => { if (!sensitivity) return ''; const [key, { time_saved_s: saved }] = Object.entries(sensitivity).filter(([, v]) => v.time_saved_s !== undefined).sort((a, b) => b[1].time_saved_s - a[1].time_saved_s)[0]; return `A tenth more of ${words(key)} saves most: ${seconds(saved)}, ${percent(saved / step.time_s)} of the step. That is why it takes as long as it does.`; } },
  { title: 'Now you', about: 'Forty exercises ask for a prediction first and answer mistakes with hints. Sweeps, caches, power and the microkernels behind the laws are views of their own. Undo brings anything back; the link holds the whole question.', at: '#views', go: ask('exercises'), says: () => '' },
];

/** `lab`: with the answer at hand; `drawn()`: the next picture is there. */
export function tour(lab) {
  if (document.getElementById('tour')) return;
  const before = structuredClone(current());
  let at = -1;
  const title = h('h2', { id: 'tour-title' });
  const text = h('p', {});
  const said = h('p', { id: 'tour-says', role: 'status' });
  const next = h('button', { type: 'button', class: 'primary', id: 'tour-next', onclick: () => show(at + 1) });
  const back = h('button', { type: 'button', onclick: () => show(at - 1) }, 'Back');
  const leave = h('button', { type: 'button', id: 'tour-leave', onclick: () => dialog.close() }, 'Leave');
  const dialog = h('dialog', { 'aria-labelledby': 'tour-title', id: 'tour' }, title, text, said, h('div', { class: 'buttons' }, next, back, leave));
  const told = (stop) => {
    const { answer, pinned, compared } = lab;
    if (kStops[at] === stop && answer) said.textContent = stop.says(answer, { pinned, compared });
  };
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (at < kStops.length - 1) restore(before); // who leaves early finds the question as it was; undo brings the tour's back
    document.getElementById('do-tour').focus();
  });
  dialog.addEventListener('keydown', (event) => { if (event.key === 'Escape') dialog.close(); });
  async function show(number) {
    if (number >= kStops.length) return dialog.close();
    at = Math.max(0, number);
    const stop = kStops[at];
    title.textContent = `${at + 1}. ${stop.title}`;
    text.textContent = stop.about;
    said.textContent = '';
    next.textContent = at + 1 < kStops.length ? `Next (${at + 1} of ${kStops.length})` : 'Done';
    back.disabled = at === 0;
    const drawn = lab.nextPicture();
    stop.go();
    await drawn;
    if (kStops[at] !== stop) return;
    document.querySelector(stop.at)?.scrollIntoView({ block: 'nearest' });
    told(stop);
  }
  document.body.append(dialog);
  dialog.show();
  next.focus();
  show(0);
}
