// For teachers: all exercises with what they ask, how long they take, their solutions and the mistakes they expect.
import { card, h } from '../dom.js';
import { digits, percent } from '../format.js';
import { table } from '../table.js';
import { look, shipped } from './ask.js';
import { chapters, inUnit, paragraphs, solution } from './exercise_parts.js';
import { stepsToExplore } from './explore.js';

const hours = (minutes) => (minutes < 90 ? `${minutes} minutes` : `${digits(minutes / 60, 2)} hours`);
const total = (all) => all.reduce((sum, e) => sum + e.minutes, 0);

function sheet(e) {
  const mistakes = e.mistakes.length ? [h('h3', {}, 'Mistakes it answers'), h('ul', { class: 'notes' }, e.mistakes.map((m) => h('li', {}, `${inUnit(m.answer, e.unit)}: ${m.hint}`)))] : [];
  return h('article', { class: 'card sheet', id: `sheet-${e.number}` }, h('h2', {}, `${e.number}. ${e.title}`), h('p', {}, `About ${e.minutes} minutes. An answer within ${percent(e.tolerance)} counts as right.`),
    paragraphs(e.question), ...solution(e), ...mistakes, h('h3', {}, 'To explore'), h('ul', { class: 'notes' }, stepsToExplore(e).map(({ says }) => h('li', {}, says))));
}

export function teacherView() {
  const list = h('div', {});
  const sheets = h('div', { class: 'contents', id: 'sheets' });
  const told = h('p', { role: 'status', id: 'teacher-told' });
  const bar = h('progress', { max: 1, value: 0, 'aria-label': 'Exercises worked out', hidden: '' });
  let all = [];
  const worked = new Map();
  async function work(number) {
    if (!worked.has(number)) worked.set(number, await look(`exercises/${number}?solution=1`));
    return worked.get(number);
  }
  async function show(wanted) {
    bar.hidden = false;
    bar.max = wanted.length;
    sheets.replaceChildren();
    try {
      for (const [i, e] of wanted.entries()) {
        told.textContent = `Simulating ${i + 1} of ${wanted.length}: ${e.title}`;
        sheets.append(sheet(await work(e.number)));
        bar.value = i + 1;
      }
      told.textContent = `${wanted.length} solutions, about ${hours(total(wanted))} for a learner. Print this page for sheets.`;
      if (wanted.length === 1) sheets.firstChild.scrollIntoView({ block: 'start' });
    } catch (error) {
      told.textContent = error.message;
    }
    bar.hidden = true;
  }
  function fill() {
    const columns = [
      { title: 'no.', value: (e) => e.number },
      { title: 'exercise', text: true, value: (e) => e.title, show: (title, e) => h('button', { type: 'button', class: 'link', onclick: () => show([e]) }, title) },
      { title: 'chapter', text: true, value: (e) => e.chapter },
      { title: 'minutes', value: (e) => e.minutes },
    ];
    const byChapter = [
      { title: 'chapter', text: true, value: ([name]) => name, show: (name, [, ones]) => h('button', { type: 'button', class: 'link', onclick: () => show(ones) }, name) },
      { title: 'exercises', value: ([, ones]) => ones.length }, { title: 'minutes', value: ([, ones]) => total(ones) },
    ];
    list.replaceChildren(h('h3', {}, 'Chapters'), table(byChapter, chapters(all), { id: 'teacher-chapters' }), h('h3', {}, 'Exercises'), table(columns, all, { id: 'teacher-exercises' }),
      h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', id: 'all-solutions', onclick: () => show(all) }, 'All solutions')));
  }
  shipped('exercises').then((known) => { all = known; fill(); }).catch((error) => { told.textContent = error.message; });
  return { elements: [card('For teachers', 'The simulator computes each solution when it is shown, so that solutions stay right when the model changes. Choose an exercise, a chapter, or all.', list, bar, told), sheets], show: () => {} };
}
