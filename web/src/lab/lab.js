// The lab: a question on the left, its answer on the right, asked anew whenever it changes.
import { chartAt, charts, draw, reuseCharts, settle } from '../chart.js';
import { card, h } from '../dom.js';
import { bytes, percent, seconds } from '../format.js';
import { neededOf } from '../sections/summary.js';
import { kernelUnder } from '../sections/timeline.js';
import { keepTables } from '../table.js';
import { compare, fit, newestOnly, predict } from './ask.js';
import { calibrationView } from './calibration_view.js';
import { controls } from './controls.js';
import { exercisesView } from './exercises.js';
import { exportMenu } from './export.js';
import { forgive, onWrong, refuse, wrongFields } from './field.js';
import { gemmView } from './gemm_view.js';
import { children } from './morph.js';
import { drawPictures } from './picture.js';
import { scenarioView } from './scenario_view.js';
import * as asked from './state.js';
import { sweepView } from './sweep_view.js';
import { teacherView } from './teacher_view.js';
import { tour } from './tour.js';
import { kGroups, kViews, mostOf } from './views.js';

reuseCharts();
keepTables();

const content = document.getElementById('content');
const pane = document.getElementById('answer');
const trouble = document.getElementById('trouble');
const verdict = document.getElementById('verdict');
const own = { sweep: sweepView(draw), gemm: gemmView(draw), scenario: scenarioView(), exercises: exercisesView(), calibration: calibrationView(), teacher: teacherView() };
const lab = { answer: null, pinned: null, kernel: null, drawnView: null, times: [], fitted: null, pick, choose, whole, fit: () => fit(asked.current()), more: (pieces) => predict(lab.question, pieces), again: () => drawAnswer(viewOf(asked.current())), nextPicture: () => new Promise((done) => waiting.push(done)) };
let changedAt = performance.now();
let pinnedFor = '';
const waiting = []; // for the next picture
const picked = new WeakSet(); // charts whose kernels can be chosen

const viewOf = (state) => kViews.find((view) => view.id === state.view) ?? kViews[0];

/** How long the picture took since the change, once it is painted. */
function painted() {
  const begin = changedAt;
  requestAnimationFrame(() => setTimeout(() => {
    lab.times.push(performance.now() - begin);
    if (lab.times.length > 2000) lab.times.shift();
    lab.drawn = (lab.drawn ?? 0) + 1;
    for (const done of waiting.splice(0)) done();
  }));
}

function show(view, elements) {
  const scrolls = new Map([...content.querySelectorAll('.scroll[id]')].map((place) => [place.id, place.scrollTop]));
  const focused = document.activeElement?.id;
  if (lab.drawnView === view.id) children(content, elements.flat());
  else {
    content.replaceChildren(...elements.flat().map(settle));
    pane.dataset.view = view.id;
    pane.scrollTop = 0;
  }
  for (const [id, top] of scrolls) if (top) document.getElementById(id)?.scrollTo({ top });
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus({ preventScroll: true });
  lab.drawnView = view.id;
  draw();
  drawPictures();
  painted();
}

/** The verdict in a line, for every view and for who listens. */
function told({ step, memory, limited_by: limits }) {
  const fits = !memory ? '' : memory.fits ? `Fits: ${bytes(memory.device_used_bytes)} of ${bytes(memory.capacity_bytes)}. ` : `Does not fit: ${bytes(neededOf(memory))} needed, ${bytes(memory.capacity_bytes)} present. `;
  const pinned = lab.pinned ? ` A: ${seconds(lab.pinned.step.time_s)} (${percent(step.time_s / lab.pinned.step.time_s)}).` : '';
  verdict.textContent = `${fits}Step ${seconds(step.time_s)} (${seconds(step.low_s)} to ${seconds(step.high_s)})${memory && !memory.fits ? ' if it had the memory' : ''}, limited by ${mostOf(limits)}.${pinned}`;
}

function drawAnswer(view) {
  const { page, ...prediction } = lab.answer;
  show(view, view.draw({ title: prediction.scenario, prediction, ...page }, lab));
  for (const { chart, place } of charts()) {
    const groupOf = { roofline: ({ data }) => data[3] ?? -1, timeline: () => lab.answer.page.spans.group[kernelUnder(chart)] ?? -1 }[place.id];
    if (!groupOf || picked.has(chart)) continue;
    picked.add(chart);
    chart.on('click', (event) => pick(groupOf(event)));
  }
  zoomTogether('timeline', 'power');
  if (lab.scroll && prediction.kernel) document.getElementById('kernel').scrollIntoView();
  if (prediction.kernel) lab.scroll = false;
}

const linkedCharts = new WeakSet();
/** Two charts over the same time show the same stretch of it. */
function zoomTogether(...ids) {
  const both = ids.map(chartAt);
  if (!both.every(Boolean) || both.every((one) => linkedCharts.has(one))) return;
  let following = false;
  both.forEach((one, i) => {
    linkedCharts.add(one);
    one.on('datazoom', () => {
      if (following || both[1 - i].isDisposed()) return;
      const { startValue, endValue } = one.getOption().dataZoom[0];
      following = true;
      both[1 - i].dispatchAction({ type: 'dataZoom', startValue, endValue });
      following = false;
    });
  });
}

/** Says that an answer takes its time. */
async function patiently(work) {
  const said = setTimeout(() => {
    pane.classList.add('waiting');
    verdict.textContent = 'Predicting …';
  }, 400);
  try {
    return await work;
  } finally {
    clearTimeout(said);
  }
}

const answerTo = async (question, signal, who) => {
  const view = viewOf(question);
  if (question.pinned && JSON.stringify(question.pinned) !== pinnedFor) {
    lab.pinned = await predict(question.pinned, {}, signal);
    pinnedFor = JSON.stringify(question.pinned);
  }
  if (!question.pinned) lab.pinned = pinnedFor = null;
  if (view.compare) {
    if (!question.pinned) return { nothing: true };
    return compare([{ label: 'pinned', ...question.pinned }, { label: 'now', ...question }], question.engine, signal);
  }
  const more = { ...view.ask, ...who };
  if (view.kernel && lab.kernel !== null) more.kernel = lab.kernel;
  else if (view.kernel === 'longest') more.kernel = 'longest';
  return predict(question, more, signal);
};

const ask = newestOnly(
  (question, signal, who) => patiently(answerTo(question, signal, who)),
  (answer, question) => {
    pane.classList.remove('waiting');
    refused = null;
    forgive();
    showTrouble();
    const view = viewOf(question);
    if (view.id !== viewOf(asked.current()).id) return;
    if (view.compare) {
      lab.compared = answer.nothing ? null : answer;
      show(view, answer.nothing ? [card('Compare', 'Pin this answer as A, then change the scenario: this view shows what differs and why.', h('button', { type: 'button', class: 'primary', id: 'pin-here', onclick: pin }, 'Pin as A'))] : view.draw(answer));
      return;
    }
    lab.answer = answer;
    lab.question = question;
    told(answer);
    if (view.own) painted();
    else drawAnswer(view);
  },
  (error, question) => {
    pane.classList.remove('waiting');
    refused = error;
    const { key, reason } = error.where ?? {};
    if (key) refuse(key, reason ?? error.message);
    showTrouble();
    if (lab.kernel !== null && viewOf(question).kernel && key === undefined) keepKernel(null);
  },
);

let refused = null; // the mistake that the server sees in the question

/** Says what is wrong with the question, and greys the answer, which is of another one. */
function showTrouble() {
  const { file, line, column, key, reason } = refused?.where ?? {};
  const mistakes = wrongFields().map(({ title, sentence }) => `${title}: ${sentence}`);
  if (refused && !wrongFields().some((one) => one.refused)) mistakes.push(key && reason ? `${key}: ${reason}` : refused.message);
  const said = mistakes.length ? [...mistakes, ...(viewOf(asked.current()).own ? [] : ['The answer below is of the last valid question.'])].map((text) => (/[.?!]$/.test(text) ? text : `${text}.`)).join(' ') : '';
  if (trouble.textContent !== said) trouble.textContent = said;
  trouble.hidden = said === '';
  if (key) trouble.dataset.key = key;
  else delete trouble.dataset.key;
  trouble.title = file ? `${file}${line ? `:${line}:${column}` : ''}` : '';
  pane.classList.toggle('stale', said !== '' && !viewOf(asked.current()).own);
}
onWrong(showTrouble);

function keepKernel(index) {
  lab.kernel = index;
  asked.look('kernel', index);
}

/** Another kernel in the same view. */
function choose(index) {
  keepKernel(index);
  changed(asked.current());
}

function pick(index) {
  if (index < 0) return;
  keepKernel(index);
  lab.scroll = true;
  if (viewOf(asked.current()).id === 'kernels') changed(asked.current());
  else asked.update((s) => { s.view = 'kernels'; }, 'view');
}

let linked = 0;
/** The address holds the state: at once, or once it stays for a moment. */
function writeLink(state = asked.current()) {
  clearTimeout(linked);
  linked = 0;
  history.replaceState(kOurs, '', asked.fragment(state));
}
function keepLink() {
  clearTimeout(linked);
  linked = setTimeout(writeLink, 400);
}
const kOurs = { lab: true }; // an entry of the browser's history that the lab made
const placeOf = (state) => `${viewOf(state).id} ${state.look?.exercise ?? ''}`;
let last = null; // the state before

/** Another view or exercise is a step, which the browser's Back takes back. */
function step(state) {
  if (linked) writeLink(last);
  history.pushState(kOurs, '', asked.fragment(state));
}

/** Back and Forward go to views and exercises of the question as it is now; an address that was typed brings its own. */
function follow({ state: entry }) {
  const there = asked.fromFragment(location.hash);
  if (!there) return;
  if (entry?.lab) {
    asked.visit(there.view, there.look);
    writeLink();
  } else if (asked.fragment(there) !== asked.fragment(asked.current())) asked.restore(there);
}

/** The answer at hand with what its view does without. */
function whole() {
  const { answer, question } = lab;
  if (!answer || (answer.kernels && answer.modules)) return Promise.resolve(answer);
  const { show: _, leave_out: __, ...more } = viewOf(question).ask ?? {};
  if (!completed.has(answer)) completed.set(answer, predict(question, more).then((all) => ({ ...answer, ...all })));
  return completed.get(answer);
}
const completed = new WeakMap();

/** What the view at hand can save as rows. */
function rowsOf() {
  const view = viewOf(asked.current());
  if (!view.rows || !lab.answer || lab.drawnView !== view.id) return [];
  const { page, ...prediction } = lab.answer;
  return view.rows({ prediction, ...page });
}

const pin = () => asked.update((s) => { s.pinned = s.pinned ? null : structuredClone({ scenario: s.scenario, set: s.set, engine: s.engine }); });

const toolbar = {};
function toolbarShows(state) {
  toolbar.undo.disabled = !asked.canUndo();
  toolbar.redo.disabled = !asked.canRedo();
  toolbar.pin.textContent = state.pinned ? 'Unpin A' : 'Pin as A';
}

function makeToolbar() {
  const button = (name, title, run, about) => (toolbar[name] = h('button', { type: 'button', id: `do-${name}`, title: about, onclick: run }, title));
  const saving = exportMenu(() => lab.answer && whole, rowsOf, () => { const state = asked.current(); return [asked.configuration(state), asked.command(state)]; });
  document.getElementById('actions').append(
    button('undo', 'Undo', asked.undo, 'Ctrl+Z'), button('redo', 'Redo', asked.redo, 'Ctrl+Shift+Z'),
    button('pin', 'Pin as A', pin, 'Compare what follows with this answer'),
    button('link', 'Link', () => { writeLink(); navigator.clipboard?.writeText(location.href).catch(() => {}); toolbar.link.textContent = 'Copied'; setTimeout(() => { toolbar.link.textContent = 'Link'; }, 1500); }, 'The address holds all of the question'),
    button('save', 'Save', saving, 'Pictures and numbers as files'), button('tour', 'Tour', () => tour(lab), 'Five minutes, from one step of BERT to why'),
    button('theme', '', () => theme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'), 'Light or dark'));
  addEventListener('keydown', (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== 'z' || event.defaultPrevented || event.target.isContentEditable || event.target.tagName === 'INPUT' && event.target.type !== 'range' && event.target.type !== 'checkbox') return;
    event.preventDefault();
    if (event.shiftKey) asked.redo();
    else asked.undo();
  });
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  toolbar.theme.textContent = name === 'dark' ? 'Light' : 'Dark';
  if (lab.answer && lab.drawnView) changed(asked.current());
}

/** The scenario in a line: below every view, and on a phone above it. */
function askedShows(state) {
  const line = asked.configuration(state);
  document.getElementById('configuration').textContent = `Scenario: ${line}`;
  document.getElementById('question-says').textContent = line;
}

/** A phone shows the answer first: the controls open on demand. */
function makeQuestionBar() {
  const bar = document.getElementById('question');
  bar.addEventListener('click', () => {
    const open = document.getElementById('lab').classList.toggle('changing');
    bar.setAttribute('aria-expanded', String(open));
    document.getElementById('question-verb').textContent = open ? 'Done' : 'Change';
  });
}

function viewsShow(state) {
  for (const button of document.querySelectorAll('#views button')) {
    const here = button.dataset.view === viewOf(state).id;
    if (here && button.getAttribute('aria-pressed') !== 'true') button.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    button.setAttribute('aria-pressed', String(here));
  }
}

let showControls = () => {};
function changed(state, reason) {
  const before = last;
  const moves = reason !== 'link' && reason !== 'visit' && reason !== 'look' && before && placeOf(before) !== placeOf(state);
  if (moves) step(state);
  last = state;
  if (reason === 'look') return keepLink();
  if (reason === 'link' || reason === 'visit') lab.kernel = Number.isSafeInteger(state.look?.kernel) ? state.look.kernel : null;
  changedAt = performance.now();
  const same = reason === 'view' || reason === 'visit'; // question
  if (!same) lab.fitted = null;
  const view = viewOf(state);
  if (!view.own || !same) ask(state); // first: what follows is done while the server works
  showControls(state);
  toolbarShows(state);
  viewsShow(state);
  askedShows(state);
  showTrouble();
  if (!moves) keepLink();
  if (!view.own) return;
  if (lab.drawnView !== view.id) show(view, own[view.id].elements);
  own[view.id].show(state);
}

async function begin() {
  makeToolbar();
  theme(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const goTo = (view) => () => asked.update((s) => { s.view = view.id; }, 'view');
  document.getElementById('views').append(...kGroups.map((group) => h('div', { role: 'group', 'aria-label': group }, h('span', { 'aria-hidden': 'true' }, group), kViews.filter((view) => view.group === group).map((view) => h('button', { type: 'button', 'data-view': view.id, onclick: goTo(view) }, view.title)))));
  asked.restore(asked.fromFragment(location.hash));
  lab.kernel = asked.current().look?.kernel ?? null;
  asked.listen(changed);
  changed(asked.current());
  showControls = await controls(document.getElementById('controls'));
  showControls(asked.current());
  addEventListener('popstate', follow);
  makeQuestionBar();
}

globalThis.ridgeline = { lab, asked, chartAt }; // for people at the console, and for tests
begin().catch((error) => { trouble.textContent = error.message; trouble.hidden = false; });
