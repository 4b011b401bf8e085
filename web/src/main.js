// The page: one view for each prediction, and one above them where they are compared or swept.
import { chartAt, draw } from './chart.js';
import { glance, h } from './dom.js';
import { advice } from './sections/advice.js';
import { breakdown } from './sections/breakdown.js';
import { comparison } from './sections/comparison.js';
import { criticalPath } from './sections/critical_path.js';
import { flame } from './sections/flame.js';
import { host } from './sections/host.js';
import { kernels } from './sections/kernels.js';
import { memory } from './sections/memory.js';
import { parallel } from './sections/parallel.js';
import { roofline } from './sections/roofline.js';
import { summary } from './sections/summary.js';
import { sweep } from './sections/sweep.js';
import { timeline } from './sections/timeline.js';

const data = JSON.parse(document.getElementById('data').textContent);
const main = document.getElementById('main');

const predictionView = (part) => [summary(part), glance(roofline(part), breakdown(part)), timeline(part), criticalPath(part), flame(part), parallel(part), host(part), memory(part), kernels(part), advice(part)].flat();

const views = data.parts.map((part) => ({ title: part.title, show: () => predictionView(part) }));
if (data.sweep) views.unshift({ title: 'Sweep', show: () => sweep(data.sweep) });
if (data.comparison) views.unshift({ title: 'Comparison', show: () => comparison(data.comparison) });
let current = 0;

function show(index) {
  current = index;
  main.replaceChildren(...views[index].show());
  for (const [i, button] of [...document.querySelectorAll('#parts button')].entries()) button.setAttribute('aria-pressed', String(i === index));
  draw();
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  document.getElementById('theme').textContent = name === 'dark' ? 'Light' : 'Dark';
  if (main.children.length) show(current);
}

theme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
document.getElementById('theme').addEventListener('click', () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'));
if (views.length > 1) document.getElementById('parts').append(...views.map((view, i) => h('button', { type: 'button', onclick: () => show(i) }, view.title)));
document.getElementById('footer').append(`Written by ${data.generator}. Predicted, not measured; ranges come from measured residuals.`, ...(data.command ? [h('br'), h('code', { id: 'command', style: 'overflow-wrap:anywhere' }, data.command)] : []));
document.title = data.title;
show(0);
globalThis.ridgeline = { data, chartAt }; // for people at the console, and for tests
