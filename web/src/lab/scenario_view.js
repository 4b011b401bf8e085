// The scenario as YAML, both ways, and the command that asks the same.
import { card, h } from '../dom.js';
import { predict } from './ask.js';
import { changes, command, current, update, yaml } from './state.js';

export function scenarioView() {
  const text = h('textarea', { id: 'yaml', rows: 18, spellcheck: 'false', 'aria-label': 'Scenario in YAML', 'aria-describedby': 'yaml-told' });
  const told = h('p', { id: 'yaml-told', role: 'status' });
  const line = h('pre', { id: 'command', tabindex: '0', 'aria-label': 'Command' });
  const changed = h('p', { id: 'changed' });
  let shown = '';
  async function apply() {
    if (text.value === shown) return;
    try {
      const state = current();
      const answer = await predict({ ...state, text: text.value }, {});
      const scenario = answer.question.scenario ?? {};
      told.textContent = 'Applied.';
      told.className = 'good';
      shown = text.value;
      update((s) => { s.scenario = scenario; });
    } catch (error) {
      told.textContent = error.message;
      told.className = 'bad';
    }
  }
  text.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) apply(); });
  const copy = h('button', { type: 'button', onclick: () => navigator.clipboard?.writeText(line.textContent) }, 'Copy');
  const show = (state) => {
    if (document.activeElement !== text || text.value === shown) {
      shown = yaml(state.scenario);
      text.value = shown;
    }
    line.textContent = command(state);
    const all = changes(state);
    changed.textContent = all.length ? `Changed beside it: ${all.join(', ')}` : 'No number of the chip is changed.';
  };
  const elements = [
    card('Scenario', 'What `ridgeline predict FILE.yaml` reads. Edit it, then apply (Ctrl+Enter); the controls follow.', text, h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'primary', id: 'apply', onclick: apply }, 'Apply')), told, changed),
    card('Command', 'Asks the same in a terminal, without a file.', line, copy),
  ];
  return { elements, show };
}
